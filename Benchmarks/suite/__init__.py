"""What ../run and ../guard are made of."""

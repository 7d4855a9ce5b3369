"""The four kinds of maintenance of paper 002: space and rows accessed, as printed and corrected."""

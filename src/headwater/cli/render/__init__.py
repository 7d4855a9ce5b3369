"""Results as tables, trees and JSON in a terminal."""

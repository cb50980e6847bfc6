"""What happens when something is changed: heads switched off, a word replaced."""

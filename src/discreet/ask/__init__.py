"""What is asked, of whom, within which bounds."""

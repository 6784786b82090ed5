"""What tests of small machines share."""

"""What the scheduler tells at home without a model, beside what was missed (`absences`)."""

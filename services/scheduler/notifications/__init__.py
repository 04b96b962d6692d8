"""Notifications at home by the scheduler, without a model, beside what was missed (`absences`)."""

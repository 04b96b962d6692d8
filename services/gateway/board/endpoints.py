"""What is served of the board."""

from __future__ import annotations

from typing import Final

from ..endpoint import Endpoint
from . import actions, bulletins, goals, kinds, tasks

_LIST: Final = (403, 422, 503)
_READ: Final = (404, 422, 503)
_MAKE: Final = (403, 413, 422, 503)
_CHANGE: Final = (403, 404, 409, 412, 413, 422, 503)
_END: Final = (404, 409, 412, 422, 503)
_G: Final = "/api/goals"
_A: Final = "/api/actions"
_T: Final = "/api/tasks"
ENDPOINTS: Final = (
    Endpoint(
        "GET", "/api/bulletin", bulletins.list_bulletins, {200: bulletins.BulletinListing}, _LIST
    ),
    Endpoint("GET", _T, tasks.list_tasks, {200: tasks.TaskListing}, _LIST),
    Endpoint("POST", _T, tasks.make_task, {201: tasks.TaskDetail}, _MAKE, tasks.TaskBody),
    Endpoint("GET", f"{_T}/{{id}}", tasks.get_task, {200: tasks.TaskDetail}, _READ),
    Endpoint(
        "PATCH",
        f"{_T}/{{id}}",
        tasks.change_task,
        {200: tasks.TaskDetail},
        _CHANGE,
        tasks.TaskChange,
    ),
    Endpoint("DELETE", f"{_T}/{{id}}", tasks.remove_task, {200: tasks.TaskDetail}, _END),
    Endpoint("GET", _G, goals.list_goals, {200: goals.GoalListing}, _LIST),
    Endpoint("POST", _G, goals.make_goal, {201: goals.GoalDetail}, _MAKE, goals.GoalBody),
    Endpoint("GET", f"{_G}/{{id}}", goals.get_goal, {200: goals.GoalDetail}, _READ),
    Endpoint(
        "PATCH",
        f"{_G}/{{id}}",
        goals.change_goal,
        {200: goals.GoalDetail},
        _CHANGE,
        goals.GoalChange,
    ),
    Endpoint("DELETE", f"{_G}/{{id}}", goals.archive_goal, {200: goals.GoalDetail}, _END),
    Endpoint(
        "POST",
        f"{_G}/{{id}}/parts",
        goals.split_goal,
        {201: goals.GoalListing},
        _CHANGE,
        goals.GoalSplit,
    ),
    Endpoint("GET", _A, actions.list_actions, {200: actions.ActionListing}, _LIST),
    Endpoint("GET", f"{_A}/{{id}}", actions.get_action, {200: actions.ActionView}, _READ),
    Endpoint(
        "PATCH",
        f"{_A}/{{id}}",
        actions.judge_action,
        {200: actions.ActionView},
        _CHANGE,
        actions.FeedbackBody,
    ),
    *kinds.ENDPOINTS,
)

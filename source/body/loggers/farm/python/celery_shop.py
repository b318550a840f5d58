"""The shop's tasks, for a Celery worker with its queue in a directory."""
from celery import Celery
from celery.utils.log import get_task_logger

app = Celery("shop", broker="filesystem://localhost")
app.conf.broker_transport_options = {"data_folder_in": "queue", "data_folder_out": "queue"}
log = get_task_logger("orders")


@app.task
def place(order, cents):
    if cents < 0:
        raise ValueError("negative amount: %d" % cents)
    log.warning("article of order %d is nearly sold out", order)
    return order

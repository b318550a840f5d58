"""The shop with Django's default logging: django_shop.py runserver 127.0.0.1:PORT."""
import sys

from django.conf import settings
from django.core.management import execute_from_command_line
from django.http import HttpResponse
from django.urls import path

settings.configure(DEBUG=True, ROOT_URLCONF=__name__, TIME_ZONE="UTC", USE_TZ=True, SECRET_KEY="none", ALLOWED_HOSTS=["*"])


def order(request, number):
    if number == 1002:
        raise ValueError("negative amount: -5")
    return HttpResponse("ok\n")


urlpatterns = [path("orders/<int:number>", order)]

if __name__ == "__main__":
    execute_from_command_line(sys.argv)

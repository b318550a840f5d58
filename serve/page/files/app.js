// @ts-check
import { h, render } from "./preact.js";

render(h("p", null, "blobtail"), document.body);

import { render } from "preact";
import { App } from "./app";
import { listen } from "./keys";
import "./style.css";
import "./parts.css";
import { start } from "./sync";

render(<App />, document.getElementById("app")!);
listen();
void start();

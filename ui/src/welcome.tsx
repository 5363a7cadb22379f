import { api } from "./api";
import { AddForm } from "./dialogs";
import { notify, attempt } from "./sync";

export function Welcome() {
  const example = async (): Promise<void> => {
    if (await attempt(api.addExample())) {
      notify("Mark a city: click Oslo, type “city”, press Enter.");
    }
  };
  return (
    <main class="welcome">
      <h1>Mark a few words. Watch the rest light up.</h1>
      <p class="lead">
        After the first example, spanshot suggests the rest. Accept, correct, continue. Everything stays on this
        computer.
      </p>
      <ol class="steps">
        <li>
          <span class="demo">
            to <span class="segment marked tint-0">Oslo</span>
            <span class="tag mark c0">city</span>
          </span>
          Select words and name them
        </li>
        <li>
          <span class="demo">
            in <span class="segment demo-suggested">Lima</span>
            <span class="tag suggestion c0">city</span>
          </span>
          See suggestions at once
        </li>
        <li>
          <span class="demo">
            <kbd>A</kbd> <kbd>R</kbd> <kbd>Space</kbd>
          </span>
          Accept or reject with one key
        </li>
      </ol>
      <button class="main large" onClick={() => void example()}>
        Try it with a small example
      </button>
      <h2>Or start with your own text</h2>
      <AddForm />
    </main>
  );
}

// Short calls need an engine, which may just be starting or have its hands full: then they are made again.

const WAIT_MS = 2_500;
const TIMES = 24;
const PASSING = new Set(["engine.not_running", "engine.busy", "connection"]);

// Gives what `ask` gives; an error that will not pass by itself is thrown, as is any once nobody wants the answer.
export async function whenAnswered(ask, isWanted, onWait = () => {}) {
  for (let times = 1; ; times++) {
    try {
      return await ask();
    } catch (error) {
      if (!PASSING.has(error.code) || times >= TIMES || !isWanted()) throw error;
      onWait(error);
      await new Promise((resolve) => setTimeout(resolve, WAIT_MS));
    }
  }
}

/**
 * `keeper.mjs ID` waits until its standard input ends, which happens when the process that started it ends, and kills all
 * processes with the mark of that process. See kept.mjs.
 */
import { setTimeout as sleep } from "node:timers/promises"
import { marked } from "./leftovers.mjs"

/** The environment variable that marks the processes that end with a test process. */
export const ownerMark = "REQUEUE_TEST_OWNER"

/** Kills until none is left, because a process may start another one just before it is killed. */
const killAll = async (id) => {
  for (let pids = marked(ownerMark, id); pids.length > 0; pids = marked(ownerMark, id)) {
    for (const pid of pids) {
      try {
        process.kill(pid, "SIGKILL")
      } catch {
        // It has ended.
      }
    }
    await sleep(20)
  }
}

if (import.meta.main) process.stdin.resume().once("close", () => void killAll(process.argv[2]))

/**
 * All processes that this process starts end when it has ended, even if it was killed. Vitest loads this as a setup file; tests
 * that node runs import it.
 *
 * The environment of this process gets a mark, which its children and theirs inherit. A keeper waits for the end of this process
 * and kills all that still have the mark. The keepers of `tools/brokers` remove the mark, because they have a folder to clean up.
 * Only Linux shows the environment of processes; elsewhere nothing is killed.
 */
import { spawn } from "node:child_process"
import { randomUUID } from "node:crypto"
import { fileURLToPath } from "node:url"
import { ownerMark } from "./keeper.mjs"

// A kept process of a test, such as a vitest in a test, ends with what it has started.
if (process.platform === "linux" && process.env[ownerMark] === undefined) {
  const id = randomUUID()
  const program = fileURLToPath(new URL("keeper.mjs", import.meta.url))
  const keeper = spawn(process.execPath, [program, id], { detached: true, stdio: ["pipe", "ignore", "ignore"] })
  keeper.unref()
  keeper.stdin.unref()
  process.env[ownerMark] = id
}

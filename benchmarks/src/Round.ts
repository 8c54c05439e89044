/** One round: a fresh process, pinned if the machine allows it. */
import { spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import type { Answer, Task } from "./child.ts"
import type { Reading } from "./Meter.ts"
import * as Pinning from "./pinning.ts"

const program = fileURLToPath(new URL("child.js", import.meta.url))

/** Rejects if the child fails, or reports nothing for `deadline` milliseconds. */
export const run = (task: Task, pinning: Pinning.Pinning | undefined, deadline: number): Promise<Reading> =>
  new Promise((resolve, reject) => {
    const [command, args] = Pinning.client(pinning, process.execPath, ["--expose-gc", program])
    const child = spawn(command, args, { stdio: ["ignore", "ignore", "pipe", "ipc"] })
    let complaint = ""
    child.stderr?.on("data", (text: Buffer) => (complaint = `${complaint}${text.toString()}`.slice(-4000)))
    const timer = setTimeout(() => child.kill("SIGKILL"), deadline)
    let answer: Answer | undefined
    child.on("message", (message: Answer) => (answer = message))
    child.on("error", reject)
    child.on("exit", (code, signal) => {
      clearTimeout(timer)
      if (answer !== undefined && "reading" in answer) return resolve(answer.reading)
      const late = signal === "SIGKILL" ? ` after ${deadline / 1000} s` : ""
      const reason = /^(?:\w*Error: )+.*/m.exec(complaint)?.[0] ?? ""
      const why = answer?.error ?? `its process ended with ${signal ?? code}${late}. ${reason}\n${complaint}`
      reject(new Error(`${task.contender} ${task.workload}: ${why}`))
    })
    child.send(task)
  })

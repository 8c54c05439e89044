/** A program that a user starts and later stops. */
import { spawn } from "node:child_process"
import "../kept.mjs"

/** Milliseconds after which a program is killed, unless it runs until it is stopped. */
const patience = 120_000

/**
 * Starts one; a `server` runs until it is stopped. `says` resolves when it has printed a text; `stop` sends SIGTERM and returns
 * how it ended.
 */
export const start = (command, args, cwd, environment = {}, kind = "program") => {
  const child = spawn(command, args, { cwd, env: { ...process.env, ...environment } })
  const result = { code: undefined, stdout: "", stderr: "" }
  const waiting = new Set()
  const look = () => waiting.forEach((check) => check())
  for (const name of ["stdout", "stderr"]) {
    child[name].setEncoding("utf8").on("data", (text) => {
      result[name] += text
      look()
    })
  }
  const timer = kind === "server" ? undefined : setTimeout(() => child.kill("SIGKILL"), patience)
  const ended = new Promise((resolve) => {
    child.once("close", (code) => {
      clearTimeout(timer)
      result.code = code ?? undefined
      look()
      resolve(result)
    })
  })
  const says = (text) =>
    new Promise((resolve) => {
      const check = () => {
        const said = result.stdout.includes(text)
        if (!said && result.code === undefined && child.exitCode === null && child.signalCode === null) return
        waiting.delete(check)
        resolve(said)
      }
      waiting.add(check)
      check()
    })
  const stop = () => {
    child.kill("SIGTERM")
    return ended
  }
  return { says, stop, ended }
}

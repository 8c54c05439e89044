/** The log of a rehearsal: every command with its exit code, its time and its output. */
import { writeFileSync } from "node:fs"
import { relative } from "node:path"
import { call, home } from "../pack/project.mjs"

const parts = []

/** A heading, on the terminal as well. */
export const say = (heading) => {
  console.log(heading)
  parts.push(`\n## ${heading}`)
}

/** Runs a program as `call` does, and keeps its output. */
export const logged = async (command, args, cwd, timeout) => {
  const start = performance.now()
  const result = await call(command, args, cwd, timeout)
  const seconds = ((performance.now() - start) / 1000).toFixed(1)
  const folder = relative(home, cwd) || "."
  parts.push(
    `${folder}$ ${[command, ...args].join(" ")}\n${result.stdout}${result.stderr}[exit ${result.code}, ${seconds} s]`
  )
  return result
}

/** Writes the log. */
export const writeLog = (file) => writeFileSync(file, `${parts.join("\n").replaceAll(home, "")}\n`)

/** Alloy 6.2, fetched by Maven and run on this machine's Java. https://alloytools.org/alloy6.html */
import { execFile } from "node:child_process"
import { existsSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"

const execute = promisify(execFile)

const folder = fileURLToPath(new URL("..", import.meta.url))
const home = join(folder, ".alloy")
const jar = join(home, "org.alloytools.alloy.dist-6.2.0.jar")

/** A state of an instance: each relation by its name, as tuples of atoms; the columns of a set are one. */
export type State = ReadonlyMap<string, ReadonlyArray<ReadonlyArray<string>>>

/** A command of the model, and the instances that Alloy found: counterexamples of a check. */
export interface Outcome {
  readonly command: string
  readonly instances: ReadonlyArray<ReadonlyArray<State>>
}

/** Returns why Alloy does not run here, with the command that helps; `undefined` if it runs. Fetches it the first time. */
export const missing = async (): Promise<string | undefined> => {
  if (process.env["REQUEUE_NO_SERVERS"] !== undefined) return "it takes longer: npm run test:package -- model"
  if (!(await runs("java", "-version"))) return "no java: apt-get install default-jre-headless"
  if (existsSync(jar)) return undefined
  if (!(await runs("mvn", "--version"))) return "no mvn: apt-get install maven"
  const partial = mkdtempSync(`${home}-`)
  try {
    const to = `-DoutputDirectory=${partial}`
    await execute("mvn", ["-q", "-B", "-f", join(folder, "pom.xml"), "dependency:copy-dependencies", to])
    rmSync(home, { recursive: true, force: true })
    renameSync(partial, home)
    return undefined
  } catch {
    rmSync(partial, { recursive: true })
    return "Maven cannot fetch it: mvn -B -f tools/model/pom.xml dependency:copy-dependencies"
  }
}

const runs = (command: string, argument: string): Promise<boolean> =>
  execute(command, [argument]).then(
    () => true,
    () => false
  )

/** Runs the commands of a model with this prefix, and returns up to `limit` instances of each. Fails if the model is invalid. */
export const run = async (prefix: string, limit = 1, model = "settlement.als"): Promise<ReadonlyArray<Outcome>> => {
  const out = mkdtempSync(`${home}/run-`)
  try {
    const options = ["-c", `${prefix}*`, "-r", `${limit}`, "-t", "text", "-f", "-o", out]
    const { stderr, stdout } = await execute("java", [
      "-XX:+UseSerialGC",
      "-jar",
      jar,
      "exec",
      ...options,
      join(folder, model)
    ])
    const files = readdirSync(out)
    return [...`${stdout}${stderr}`.matchAll(/^\d+\. (?:check|run) +(\w+)/gm)].map(([, command = ""]) => ({
      command,
      instances: Array.from({ length: limit }, (_, index) => `${command}-solution-${index}.txt`)
        .filter((file) => files.includes(file))
        .map((file) => statesOf(readFileSync(join(out, file), "utf8")))
    }))
  } finally {
    rmSync(out, { recursive: true })
  }
}

/**
 * Reads an instance: states under headings, and a relation in each line, such as `this/Copy<:of={Copy$0->Message$0}`. The state
 * that the last one loops back to follows it once more.
 */
const statesOf = (text: string): ReadonlyArray<State> => {
  const [, ...parts] = text.split(/^-+State \d+( \(loop\))?-+$/m)
  const loop = parts.findIndex((part) => part === " (loop)") / 2
  const states = parts.filter((_, index) => index % 2 === 1).map(stateOf)
  return [...states, states[loop]!]
}

const stateOf = (text: string): State =>
  new Map(
    [...text.matchAll(/^this\/(?:\w+<:)?(\w+)=\{(.*)\}$/gm)].map(([, name = "", tuples = ""]) => [
      name,
      tuples === "" ? [] : tuples.split(", ").map((tuple) => tuple.split("->"))
    ])
  )

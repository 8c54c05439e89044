/** A folder with a config file in it, for one test. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, onTestFinished } from "vitest"
import { Configuration, ConfigFileError } from "../src/index.ts"

/** The folder; it goes when the test ends. */
export const folder = async (files: Readonly<Record<string, string>>): Promise<string> => {
  const path = await mkdtemp(join(tmpdir(), "requeue-config-"))
  onTestFinished(() => rm(path, { recursive: true }))
  for (const [name, text] of Object.entries(files)) await writeFile(join(path, name), text)
  return path
}

type Environment = Readonly<Record<string, string>>

/** Loads a `requeue.config.yaml` of this text. */
const loadYaml = async (yaml: string, environment: Environment = {}) => {
  const cwd = await folder({ "requeue.config.yaml": yaml })
  return await Effect.runPromise(Effect.result(Configuration.load({ cwd, environment })))
}

/** The configuration of this text, which is sound. */
export const sound = async (yaml: string, environment: Environment = {}): Promise<Configuration.Configuration> =>
  Result.getOrThrow(await loadYaml(yaml, environment))

/** What is said about this text, line by line. */
export const complaints = async (yaml: string, environment: Environment = {}): Promise<ReadonlyArray<string>> => {
  const result = await loadYaml(yaml, environment)
  if (Result.isSuccess(result)) throw new Error("it was accepted")
  assert.instanceOf(result.failure, ConfigFileError)
  return result.failure.message.split("\n")
}

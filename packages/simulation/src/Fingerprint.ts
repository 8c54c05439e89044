/** The fingerprint of the code that a campaign runs: results of other code prove nothing about this one. */
import { Digest } from "@requeue/core/port"
import { readdirSync, readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

/** The packages that every campaign runs. */
const always = ["@requeue/core", "@requeue/operations"]

/** Those of the brokers. A program that does not use an adapter need not have it. */
const adapters = ["rabbitmq", "sqs", "nsq", "sqlite"].map((name) => `@requeue/adapter-${name}`)

/** The folder of a package, as a file imports it; none if it is not installed. */
const foldersOf = (name: string, from: string): ReadonlyArray<string> => {
  try {
    return [dirname(createRequire(from).resolve(name))]
  } catch {
    return []
  }
}

/** The names and the texts of the sources below a folder, or of their build; never of files next to the code, such as types. */
const contentsOf = (folder: string): ReadonlyArray<string | Uint8Array> =>
  readdirSync(folder, { encoding: "utf8", recursive: true })
    .filter((name) => /(?<!\.d)\.[jt]s$/.test(name))
    .toSorted()
    .flatMap((name) => [name.replaceAll("\\", "/"), readFileSync(join(folder, name))])

/** The folders of all code that worlds run. */
export const folders = (): ReadonlyArray<string> => {
  const own = fileURLToPath(import.meta.url)
  const direct = [...always, ...adapters].flatMap((name) => foldersOf(name, own))
  const shared = direct.flatMap((folder) => foldersOf("@requeue/kit", join(folder, "index.js")))
  return [...new Set([dirname(own), ...direct, ...shared])]
}

/** The digest of the code that worlds run, as it is on disk now. */
export const ofCode = (): string => Digest.hex(...folders().flatMap(contentsOf))

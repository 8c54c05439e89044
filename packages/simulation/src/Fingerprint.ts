/** The fingerprint of the code that a campaign runs: results of other code prove nothing about this one. */
import { Digest } from "@requeue/core/port"
import { readdirSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

/** The sources below a folder, or their build; never files next to the code, such as types. */
const digestOf = (folder: string): string => {
  const names = readdirSync(folder, { encoding: "utf8", recursive: true })
    .filter((name) => /(?<!\.d)\.[jt]s$/.test(name))
    .toSorted()
  return Digest.hex(...names.flatMap((name) => [name.replaceAll("\\", "/"), readFileSync(join(folder, name))]))
}

/** The digest of the core and of the simulation, as they are on disk now. */
export const ofCode = (): string =>
  [import.meta.resolve("@requeue/core"), import.meta.url].map((url) => digestOf(dirname(fileURLToPath(url)))).join("-")

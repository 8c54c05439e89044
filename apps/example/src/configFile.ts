/** A config file for the command `requeue` while a run lasts: it names the broker, with its password, and the queue. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { queue } from "./policy.ts"

export interface ConfigFile extends Disposable {
  readonly path: string
}

export const writeConfigFile = (broker: string, url: string): ConfigFile => {
  const folder = mkdtempSync(join(tmpdir(), "requeue-demo-"))
  const path = join(folder, "requeue.config.json")
  const document = { brokers: { [broker]: url }, queues: { [queue]: { retry: { maxRetries: 5 } } } }
  // Readable by its owner only: the address has a password.
  writeFileSync(path, JSON.stringify(document, null, 2), { mode: 0o600 })
  return { path, [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }) }
}

/** SQLite and the file system. Only this file and `log.ts` import them. */
import * as fs from "node:fs"
import { dirname, resolve } from "node:path"
import * as Context from "effect/Context"
import { memory } from "../SqliteOptions.ts"
import type { Driver as DriverType } from "./driver.ts"
import * as Log from "./log.ts"

export type { Database, Statement } from "./driver.ts"

export type Driver = DriverType

/** The longest interval that Node supports, in milliseconds. */
const interval = 2 ** 31 - 1

const nameOf = (path: string): string => {
  const { dev, ino } = fs.statSync(path)
  return `${dev}:${ino}`
}

const orUndefined = <A>(read: () => A): A | undefined => {
  try {
    return read()
  } catch {
    return undefined
  }
}

/** Node's own. */
export const node: Driver = {
  resolve: (path) => (path === memory ? path : resolve(path)),
  open: (path) => {
    // Not imported: loading it makes Node 22 warn, also in programs that use another broker.
    const { DatabaseSync: Opened } = process.getBuiltinModule("node:sqlite")
    return new Opened(path, { timeout: 0 })
  },
  fileSystem: (path) => orUndefined(() => fs.statfsSync(dirname(path)).type),
  identity: (path) => orUndefined(() => nameOf(path)),
  logOf: (path) => orUndefined(() => Log.pathOf(path)),
  log: Log.node,
  watch: (path, onChange) =>
    orUndefined(() => {
      const watcher = fs.watch(Log.pathOf(path), { persistent: false }, onChange)
      watcher.on("error", () => watcher.close())
      return () => watcher.close()
    }),
  // oxlint-disable-next-line no-restricted-globals -- the end of a turn, which gathers the sends of many sockets
  soon: (run) => void setImmediate(run),
  keepAlive: () => {
    // oxlint-disable-next-line no-restricted-globals -- it measures no time, and Effect's Clock may be virtual
    const timer = setInterval(() => {}, interval)
    return () => clearInterval(timer)
  }
}

/** The driver of the brokers that are made in this context. Default: Node's own. */
export const Driver: Context.Reference<Driver> = Context.Reference("@requeue/adapter-sqlite/Driver", {
  defaultValue: () => node
})

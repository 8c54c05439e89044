/**
 * An instance is a folder with the data of one broker, a block of ports and the processes that use them. Its record in
 * the folder tells everybody else what to end and remove once its owner is gone.
 */
import { spawn as spawnProcess, type ChildProcess } from "node:child_process"
import { randomBytes } from "node:crypto"
import {
  mkdirSync,
  openSync,
  closeSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync
} from "node:fs"
import { createServer } from "node:net"
import { homedir } from "node:os"
import { extname, join } from "node:path"
import { fileURLToPath } from "node:url"
import * as docker from "./docker.ts"
import * as processes from "./processes.ts"

export interface Record {
  readonly id: string
  /** None when the instance is to outlive the process that made it. */
  readonly owner: processes.Identity | undefined
  readonly processes: ReadonlyArray<processes.Identity>
  readonly containers: ReadonlyArray<string>
  /** What the maker wants to know about it later. */
  readonly notes: { readonly [name: string]: string | number | undefined }
}

export interface Instance {
  readonly id: string
  readonly folder: string
  readonly port: (index: number) => number
  /** Starts a process of the instance; its output goes to a file in the folder. */
  readonly spawn: (command: string, args: ReadonlyArray<string>, options: SpawnOptions) => processes.Identity
  readonly addContainer: (name: string) => void
  readonly note: (notes: Record["notes"]) => void
  /** From now on it outlives this process. */
  readonly detach: () => Promise<void>
  readonly dispose: () => Promise<void>
}

interface SpawnOptions {
  readonly env: { readonly [name: string]: string }
  readonly output: string
}

/** Where everything of ours is: instances, and Debian trees. */
export const home = (...path: ReadonlyArray<string>): string =>
  join(process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "requeue", ...path)

const portsPerInstance = 16
// Below the ports that systems give to outgoing connections: one of those could otherwise sit on the port of a broker
// that was killed and is to come back.
const [firstPort, lastPort] = [20_000, 32_000]

const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer()
    server.once("error", () => resolve(false))
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)))
  })

/** Makes the folder that claims a block of ports: its name is the first port, and only one process can make it. */
const claim = async (): Promise<{ folder: string; base: number }> => {
  mkdirSync(home("run"), { recursive: true })
  for (let tries = 0; tries < 200; tries++) {
    const blocks = (lastPort - firstPort) / portsPerInstance
    const base = firstPort + portsPerInstance * Math.floor(Math.random() * blocks)
    const ports = Array.from({ length: portsPerInstance }, (_, index) => base + index)
    if ((await Promise.all(ports.map(isFree))).includes(false)) continue
    const folder = home("run", String(base))
    try {
      mkdirSync(folder, { mode: 0o700 })
      return { folder, base }
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code !== "EEXIST") throw cause
    }
  }
  throw new Error(`No ${portsPerInstance} free ports next to each other from ${firstPort} to ${lastPort} on 127.0.0.1`)
}

const recordFile = (folder: string) => join(folder, "record.json")

const write = (folder: string, record: Record): void => {
  writeFileSync(`${recordFile(folder)}.new`, JSON.stringify(record))
  renameSync(`${recordFile(folder)}.new`, recordFile(folder))
}

export const read = (folder: string): Record | undefined => {
  try {
    return JSON.parse(readFileSync(recordFile(folder), "utf8")) as Record
  } catch {
    return undefined
  }
}

/** Ends the processes of the recorded instance and removes its folder. */
export const remove = async (folder: string, record: Record): Promise<void> => {
  // Twice: a process that was ended may have started a helper just before.
  for (let pass = 0; pass < 2; pass++) await processes.kill([...record.processes, ...processes.marked(record.id)])
  for (const name of record.containers) await docker.remove(name)
  if (read(folder)?.id === record.id) rmSync(folder, { recursive: true, force: true })
}

/** All recorded instances. */
export const list = (): ReadonlyArray<{ folder: string; record: Record }> => {
  mkdirSync(home("run"), { recursive: true })
  return readdirSync(home("run")).flatMap((name) => {
    const record = read(home("run", name))
    return record === undefined ? [] : [{ folder: home("run", name), record }]
  })
}

/** Removes what owners that died have left behind. What cannot be removed now, as without its engine, waits. */
export const sweep = async (): Promise<void> => {
  const abandoned = list().filter(({ record: { owner } }) => owner !== undefined && !processes.isAlive(owner))
  await Promise.allSettled(abandoned.map(({ folder, record }) => remove(folder, record)))
  for (const name of readdirSync(home("run"))) {
    const folder = home("run", name)
    // Claimed by a process that ended before it could write its record: a matter of microseconds.
    const age = Date.now() - (statSync(folder, { throwIfNoEntry: false })?.mtimeMs ?? Date.now())
    if (age > 60_000 && read(folder) === undefined) rmSync(folder, { recursive: true, force: true })
  }
}

/** A process that removes the instance when this one is gone, however it went: its standard input ends then. */
const startKeeper = (folder: string, id: string): ChildProcess => {
  const program = fileURLToPath(new URL(`./keeper${extname(import.meta.url)}`, import.meta.url))
  const keeper = spawnProcess(process.execPath, [program, folder, id], {
    detached: true,
    stdio: ["pipe", "ignore", "ignore"]
  })
  keeper.unref()
  ;(keeper.stdin as unknown as { unref: () => void }).unref()
  return keeper
}

/** A new instance, which is removed when this process ends. */
export const make = async (): Promise<Instance> => {
  await sweep()
  const { folder, base } = await claim()
  const id = randomBytes(8).toString("hex")
  let record: Record = { id, owner: processes.identify(process.pid), processes: [], containers: [], notes: {} }
  const update = (change: Partial<Record>) => write(folder, (record = { ...record, ...change }))
  update({})
  const keeper = startKeeper(folder, id)
  const dismissKeeper = async () => {
    if (keeper.exitCode !== null) return
    const gone = new Promise((resolve) => keeper.once("exit", resolve))
    keeper.ref()
    keeper.stdin?.end()
    await gone
  }
  return {
    id,
    folder,
    port: (index) => base + index,
    spawn: (command, args, { env, output }) => {
      const file = openSync(join(folder, output), "a")
      // Detached: Ctrl-C in a terminal is for this process, which decides what becomes of the broker.
      const child = spawnProcess(command, args, {
        cwd: folder,
        detached: true,
        env: { ...env, [processes.marker]: id },
        stdio: ["ignore", file, file]
      })
      closeSync(file)
      child.on("error", () => {})
      child.unref()
      if (child.pid === undefined) throw new Error(`Cannot run ${command}`)
      const identity = processes.identify(child.pid) ?? processes.lost(child.pid)
      update({ processes: [...record.processes.filter(processes.isAlive), identity] })
      return identity
    },
    addContainer: (name) => update({ containers: [...record.containers, name] }),
    note: (notes) => update({ notes: { ...record.notes, ...notes } }),
    detach: async () => {
      update({ owner: undefined })
      await dismissKeeper()
    },
    dispose: async () => {
      await remove(folder, record)
      await dismissKeeper()
    }
  }
}

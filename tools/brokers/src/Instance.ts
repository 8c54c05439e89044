/**
 * An instance is a folder with the data of one broker, a block of ports and the processes that use them. A record in the folder
 * lists what must be ended and removed after the instance's owner has died.
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
import { createServer, Socket } from "node:net"
import { homedir } from "node:os"
import { extname, join } from "node:path"
import { fileURLToPath } from "node:url"
import * as docker from "./docker.ts"
import { codeOf } from "./errorCode.ts"
import * as processes from "./processes.ts"

/** The record of an instance. */
export interface InstanceRecord {
  readonly id: string
  /** The process that made it; `undefined` if the instance outlives that process. */
  readonly owner: processes.Identity | undefined
  readonly processes: ReadonlyArray<processes.Identity>
  readonly containers: ReadonlyArray<string>
  /** Facts about the broker, for the command line. */
  readonly notes: { readonly [name: string]: string | number | undefined }
}

/** An instance that this process made. */
export interface Instance {
  readonly id: string
  readonly folder: string
  readonly port: (index: number) => number
  /** Starts a process of the instance; its output goes to a file in the folder. */
  readonly spawn: (command: string, args: ReadonlyArray<string>, options: SpawnOptions) => processes.Identity
  readonly addContainer: (name: string) => void
  readonly note: (notes: InstanceRecord["notes"]) => void
  /** Lets the instance outlive this process. */
  readonly detach: () => Promise<void>
  readonly dispose: () => Promise<void>
}

interface SpawnOptions {
  readonly env: { readonly [name: string]: string }
  readonly output: string
}

/** A path in the folder of this package's files: instances, Debian trees, and programs that it installs. */
export const home = (...path: ReadonlyArray<string>): string =>
  join(process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "requeue", ...path)

const portsPerInstance = 16
// Below the ports that systems give to outgoing connections: such a connection could take the port of a killed broker that will
// start again.
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
      if (codeOf(cause) !== "EEXIST") throw cause
    }
  }
  throw new Error(`No ${portsPerInstance} free ports next to each other from ${firstPort} to ${lastPort} on 127.0.0.1`)
}

const recordFile = (folder: string) => join(folder, "record.json")

const write = (folder: string, record: InstanceRecord): void => {
  writeFileSync(`${recordFile(folder)}.new`, JSON.stringify(record))
  renameSync(`${recordFile(folder)}.new`, recordFile(folder))
}

export const read = (folder: string): InstanceRecord | undefined => {
  try {
    const record: InstanceRecord = JSON.parse(readFileSync(recordFile(folder), "utf8"))
    return record
  } catch {
    return undefined
  }
}

/** Ends the processes of the recorded instance and removes its folder. */
export const remove = async (folder: string, record: InstanceRecord): Promise<void> => {
  // Twice, because a process may have started a helper just before it was ended.
  for (let pass = 0; pass < 2; pass++) await processes.kill([...record.processes, ...processes.marked(record.id)])
  for (const name of record.containers) await docker.remove(name)
  if (read(folder)?.id === record.id) rmSync(folder, { recursive: true, force: true })
}

/** All recorded instances. */
export const list = (): ReadonlyArray<{ folder: string; record: InstanceRecord }> => {
  mkdirSync(home("run"), { recursive: true })
  return readdirSync(home("run")).flatMap((name) => {
    const record = read(home("run", name))
    return record === undefined ? [] : [{ folder: home("run", name), record }]
  })
}

/** Removes the instances of owners that died. An instance whose Docker engine is missing stays. */
export const sweep = async (): Promise<void> => {
  const abandoned = list().filter(({ record: { owner } }) => owner !== undefined && !processes.isAlive(owner))
  await Promise.allSettled(abandoned.map(({ folder, record }) => remove(folder, record)))
  for (const name of readdirSync(home("run"))) {
    const folder = home("run", name)
    // A process that ended between its claim and its record leaves a folder without a record.
    const age = Date.now() - (statSync(folder, { throwIfNoEntry: false })?.mtimeMs ?? Date.now())
    if (age > 60_000 && read(folder) === undefined) rmSync(folder, { recursive: true, force: true })
  }
}

/** The mark of a test run, by which scripts/leftovers.mjs finds what the run left behind. */
const runMark = () => {
  const run = process.env["REQUEUE_TEST_RUN"]
  return run === undefined ? {} : { REQUEUE_TEST_RUN: run }
}

/** Starts a process that removes the instance when this process ends: its standard input ends then. */
const startKeeper = (folder: string, id: string): ChildProcess => {
  const program = fileURLToPath(new URL(`./keeper${extname(import.meta.url)}`, import.meta.url))
  // Without the mark of scripts/kept.mjs: marked processes are killed with the owner, and the keeper has work to do then.
  const { REQUEUE_TEST_OWNER: _mark, ...env } = process.env
  const keeper = spawnProcess(process.execPath, [program, folder, id], {
    detached: true,
    env,
    stdio: ["pipe", "ignore", "ignore"]
  })
  keeper.unref()
  if (keeper.stdin instanceof Socket) keeper.stdin.unref()
  return keeper
}

/** Makes an instance, which is removed when this process ends. */
export const make = async (): Promise<Instance> => {
  await sweep()
  const { folder, base } = await claim()
  const id = randomBytes(8).toString("hex")
  let record: InstanceRecord = { id, owner: processes.identify(process.pid), processes: [], containers: [], notes: {} }
  const update = (change: Partial<InstanceRecord>) => write(folder, (record = { ...record, ...change }))
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
      // Detached: Ctrl-C in a terminal reaches this process only.
      const child = spawnProcess(command, args, {
        cwd: folder,
        detached: true,
        env: { ...env, ...runMark(), [processes.marker]: id },
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

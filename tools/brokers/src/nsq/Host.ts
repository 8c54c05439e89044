/** Hosts of NSQ's programs: this machine, or one container for all of them. */
import { mkdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import * as docker from "../docker.ts"
import type { Instance } from "../Instance.ts"
import * as processes from "../processes.ts"
import type { Installation } from "./installation.ts"

export interface Host {
  readonly source: string
  /** The address to listen on. */
  readonly listen: string
  /** Makes a folder for the data of this name. */
  readonly folder: (name: string) => Promise<string>
  /** Starts a program in the background; its output is the log of this name. */
  readonly run: (name: string, program: string, args: ReadonlyArray<string>) => Promise<Process>
  readonly log: (name: string) => Promise<string>
}

export interface Process {
  /** Its pid, while it runs on this machine. */
  readonly pid: () => number | undefined
  readonly isAlive: () => Promise<boolean>
  /** Sends a signal, and returns whether the process ended in time. */
  readonly end: (signal: "SIGTERM" | "SIGKILL", milliseconds: number) => Promise<boolean>
}

const lastLines = (text: string) => text.trimEnd().split("\n").slice(-15).join("\n")

export const local = (instance: Instance, { folder, version }: Installation): Host => ({
  source: `${folder} (${version})`,
  listen: "127.0.0.1",
  folder: async (name) => {
    const own = join(instance.folder, name)
    mkdirSync(own)
    return own
  },
  run: async (name, program, args) => {
    const env = { PATH: process.env["PATH"] ?? "" }
    const started = instance.spawn(join(folder, program), args, { env, output: `${name}.log` })
    return {
      pid: () => (processes.isAlive(started) ? started.pid : undefined),
      isAlive: async () => processes.isAlive(started),
      end: async (signal, milliseconds) => {
        processes.signal(started, signal)
        return processes.ended([started], milliseconds)
      }
    }
  },
  log: async (name) => lastLines(readFileSync(join(instance.folder, `${name}.log`), "utf8"))
})

/** A container that does nothing itself. Programs are started and ended in it, and reach each other on 127.0.0.1. */
export const container = async (
  instance: Instance,
  image: string,
  ports: ReadonlyArray<number>,
  say: (line: string) => void
): Promise<Host> => {
  const box = await docker.make(instance, {
    image,
    env: {},
    // The ports are the same outside as inside, because nsqlookupd gives clients the ports inside.
    ports: Object.fromEntries(ports.map((port) => [port, port])),
    files: {},
    command: ["tail", "-f", "/dev/null"],
    say
  })
  await box.start()
  const sh = (script: string, ...args: ReadonlyArray<string>) => box.exec("sh", "-c", script, "sh", ...args)
  return {
    source: image,
    listen: "0.0.0.0",
    folder: async (name) => {
      await sh('mkdir -p "$1"', `/data/${name}`)
      return `/data/${name}`
    },
    run: async (name, program, args) => {
      const script = 'log=$1; shift; "$@" >>"$log" 2>&1 </dev/null & echo $!'
      const pid = (await sh(script, `/data/${name}.log`, program, ...args)).trim()
      const isAlive = async () => (await sh('kill -0 "$1" 2>/dev/null && echo yes || echo no', pid)).trim() === "yes"
      return {
        pid: () => undefined,
        isAlive,
        end: async (signal, milliseconds) => {
          await sh(`kill -${signal.slice(3)} "$1" 2>/dev/null || true`, pid)
          const deadline = performance.now() + milliseconds
          while (await isAlive()) {
            if (performance.now() > deadline) return false
            await sleep(20)
          }
          return true
        }
      }
    },
    log: async (name) => lastLines(await sh('cat "$1"', `/data/${name}.log`))
  }
}

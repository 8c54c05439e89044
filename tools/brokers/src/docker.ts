/** Containers of a Docker engine, with their ports on 127.0.0.1. */
import { execFile } from "node:child_process"
import { setTimeout as sleep } from "node:timers/promises"
import { promisify } from "node:util"
import { Unavailable } from "./Broker.ts"
import { answerTimeout } from "./ready.ts"

const run = promisify(execFile)

/** The error of a command that fails. */
type Failure = Error & { readonly code?: unknown; readonly stderr?: string }

const failure = ({ code, message, stderr }: Failure): string => {
  if (code === "ENOENT") return "the docker command is not installed"
  return (stderr?.trim() || message).split("\n").slice(-1).join("")
}

const docker = async (...args: ReadonlyArray<string>): Promise<string> => {
  const { stdout, stderr } = await run("docker", args, { maxBuffer: 1 << 26 }).catch((cause: Failure) => {
    throw new Error(`docker ${args[0]}: ${failure(cause)}`)
  })
  return `${stdout}${args[0] === "logs" ? stderr : ""}`
}

let engine: Promise<unknown> | undefined

/** Throws `Unavailable` without an engine. Asks only once, because an engine on another machine may not answer at all. */
export const needsEngine = async (): Promise<void> => {
  engine ??= run("docker", ["version", "--format", "{{.Server.Version}}"], { timeout: 30_000 })
  await engine.catch((cause: Failure) => {
    throw new Unavailable(failure(cause))
  })
}

export const hasImage = (image: string): Promise<boolean> =>
  docker("image", "inspect", image).then(
    () => true,
    () => false
  )

export interface ContainerOptions {
  readonly image: string
  readonly env: { readonly [name: string]: string }
  /** Ports of this machine, by the ports of the container. */
  readonly ports: { readonly [inside: number]: number }
  /** Files to copy into the container, by their path inside. */
  readonly files: { readonly [inside: string]: string }
  /** Replaces the command of the image. */
  readonly command?: ReadonlyArray<string>
  readonly say: (line: string) => void
}

export interface Container {
  readonly start: () => Promise<void>
  readonly isRunning: () => Promise<boolean>
  readonly kill: () => Promise<void>
  readonly stop: () => Promise<void>
  readonly log: () => Promise<string>
  readonly exec: (...command: ReadonlyArray<string>) => Promise<string>
}

/** The instance that removes the container at the end. */
interface Owner {
  readonly id: string
  readonly addContainer: (name: string) => void
}

/** Removes a container and its data, unless it is already gone. */
export const remove = async (name: string): Promise<void> => {
  for (const began = performance.now(); ; ) {
    const failed = await docker("rm", "--force", "--volumes", name).then(
      () => undefined,
      (cause: Error) => cause
    )
    if (failed === undefined) return
    const found = await docker("ps", "--all", "--quiet", "--filter", `name=^${name}$`)
    if (found.trim() === "") return
    if (performance.now() - began > answerTimeout) throw failed
    await sleep(200)
  }
}

export const make = async (instance: Owner, options: ContainerOptions): Promise<Container> => {
  const name = `requeue-${instance.id}`
  if (!(await hasImage(options.image))) {
    options.say(`Pulling ${options.image} ...`)
    await docker("pull", options.image).catch((cause: Error) => {
      throw new Unavailable(`cannot pull ${options.image}: ${cause.message}`)
    })
  }
  // Recorded before it is made, because a record without a container does no harm.
  instance.addContainer(name)
  const env = Object.entries(options.env).flatMap(([key, value]) => ["--env", `${key}=${value}`])
  const ports = Object.entries(options.ports).flatMap(([inside, port]) => ["--publish", `127.0.0.1:${port}:${inside}`])
  const { command = [], image } = options
  // The init process reaps zombies, which would count as alive.
  await docker("create", "--init", "--name", name, "--hostname", "requeue", ...env, ...ports, image, ...command)
  for (const [inside, file] of Object.entries(options.files)) await docker("cp", file, `${name}:${inside}`)
  const isRunning = async () => (await docker("inspect", "--format", "{{.State.Running}}", name)).trim() === "true"
  return {
    start: async () => void (await docker("start", name)),
    isRunning,
    kill: async () => {
      if (await isRunning()) await docker("kill", name)
    },
    stop: async () => void (await docker("stop", "--time", "300", name)),
    log: () => docker("logs", "--tail", "15", name),
    exec: (...command) => docker("exec", name, ...command)
  }
}

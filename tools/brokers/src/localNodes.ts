/** RabbitMQ nodes that are processes of this machine. */
import { execFile } from "node:child_process"
import { randomBytes } from "node:crypto"
import { once } from "node:events"
import { readFileSync, readdirSync, writeFileSync } from "node:fs"
import { connect } from "node:net"
import { join } from "node:path"
import { promisify } from "node:util"
import type { Instance } from "./Instance.ts"
import type { Installation } from "./installation.ts"
import type { RabbitMqNode } from "./RabbitMqNode.ts"
import { handshake } from "./amqp.ts"
import * as Files from "./localNodeFiles.ts"
import * as processes from "./processes.ts"
import { untilReady } from "./ready.ts"

interface Options extends Files.Settings {
  readonly deadline: number
  readonly say: (line: string) => void
}

const run = promisify(execFile)

// The instance's folder appears here inside a tree. Only the processes of the node see the mounts, which end with them: nothing
// has to be unmounted, whatever is killed.
const mountPoint = "/mnt"
const enter = `set -e
mount --bind /proc "$1/proc"
mount --rbind /dev "$1/dev"
mount --bind "$2" "$1${mountPoint}"
root=$1
shift 2
exec chroot "$root" "$@"`

const tail = (folder: string): string => {
  const files = readdirSync(folder).filter((name) => name.endsWith(".log"))
  const lines = files.flatMap((name) => readFileSync(join(folder, name), "utf8").trimEnd().split("\n").slice(-15))
  return lines.join("\n")
}

const knock = async (port: number): Promise<void> => {
  const socket = connect(port, "127.0.0.1")
  await once(socket, "connect").finally(() => socket.destroy())
}

/** The commands of an installation, run for one instance. */
const makeCommands = (instance: Instance, { root, scripts }: Installation) => {
  const home = root === undefined ? instance.folder : mountPoint
  return {
    scripts,
    /** The instance's folder, as commands see it. */
    home,
    /** Returns the command line that runs a command inside the root. */
    inside: (command: string, args: ReadonlyArray<string>): [string, Array<string>] =>
      root === undefined
        ? [command, [...args]]
        : [
            "unshare",
            ["--mount", "--propagation", "private", "sh", "-c", enter, "sh", root, instance.folder, command, ...args]
          ],
    env: {
      PATH: root === undefined ? (process.env["PATH"] ?? "") : "/usr/sbin:/usr/bin:/sbin:/bin",
      HOME: home,
      LANG: "C.UTF-8",
      // One port mapper for all nodes of the instance, and for no others.
      ERL_EPMD_PORT: String(instance.port(0)),
      ERL_EPMD_ADDRESS: "127.0.0.1"
    }
  }
}

type Commands = ReturnType<typeof makeCommands>

/** Makes a function that starts the instance's Erlang port mapper, unless it runs. */
const makeEpmd = (instance: Instance, { env, inside }: Commands, options: Options) => {
  let epmd: { readonly process: processes.Identity; readonly ready: Promise<void> } | undefined
  // Started in the foreground: a port mapper that a node starts is a daemon with an unknown pid.
  return (): Promise<void> => {
    if (epmd !== undefined && processes.isAlive(epmd.process)) return epmd.ready
    const process = instance.spawn(...inside("epmd", []), { env, output: "epmd.log" })
    const port = instance.port(0)
    const ready = untilReady(() => knock(port), {
      ...options,
      what: `epmd on 127.0.0.1:${port}`,
      isAlive: () => processes.isAlive(process),
      log: () => tail(instance.folder),
      end: () => processes.kill([process])
    })
    epmd = { process, ready }
    return ready
  }
}

/** Makes the nodes of an instance: one, or a cluster. None of them is started yet. */
export const make = (
  instance: Instance,
  installation: Installation,
  options: Options
): readonly [RabbitMqNode, ...Array<RabbitMqNode>] => {
  const commands = makeCommands(instance, installation)
  const { inside, scripts } = commands
  writeFileSync(join(instance.folder, ".erlang.cookie"), randomBytes(16).toString("hex"), { mode: 0o400 })
  // Replaces the machine's own file, which may contain anything.
  writeFileSync(join(instance.folder, "env.conf"), "")
  const startEpmd = makeEpmd(instance, commands, options)

  const makeNode = (index: number): RabbitMqNode => {
    const name = `n${index + 1}`
    const port = instance.port(3 * index + 1)
    const url = `amqp://requeue:${options.password}@127.0.0.1:${port}/`
    const tlsPort = options.tls === undefined ? undefined : Files.tlsPort(instance, index, options)
    const isReady = async (milliseconds: number): Promise<void> => {
      await handshake(url, milliseconds)
      // RabbitMQ opens this port after the other one.
      if (tlsPort !== undefined) await knock(tlsPort)
    }
    const env = Files.prepare(instance, commands, options, index)
    const log = () => tail(join(instance.folder, name))

    let vm: processes.Identity | undefined
    const isRunning = () => vm !== undefined && processes.isAlive(vm)
    const start = async () => {
      if (isRunning()) return
      await startEpmd()
      const started = instance.spawn(...inside(`${scripts}/rabbitmq-server`, []), { env, output: `${name}/output.log` })
      vm = started
      await untilReady(isReady, {
        ...options,
        what: `RabbitMQ ${installation.version} on 127.0.0.1:${port}`,
        isAlive: () => processes.isAlive(started),
        log,
        end: () => processes.kill([started])
      })
    }
    const stop = async () => {
      if (vm === undefined || !processes.signal(vm, "SIGTERM")) return
      if (await processes.ended([vm], options.deadline)) return
      throw new Error(`RabbitMQ on 127.0.0.1:${port} is still there ${options.deadline} ms after SIGTERM`)
    }
    return {
      name,
      url,
      port,
      tlsUrl: tlsPort === undefined ? undefined : `amqps://127.0.0.1:${tlsPort}/`,
      managementUrl: `http://requeue:${options.password}@127.0.0.1:${port + 1}/`,
      pid: () => (isRunning() ? vm?.pid : undefined),
      start,
      kill: async () => {
        if (vm !== undefined) await processes.kill([vm])
      },
      stop,
      restart: async () => {
        await stop()
        await start()
      },
      log: async () => log(),
      ctl: async (...args) => {
        const { stdout } = await run(...inside(`${scripts}/rabbitmqctl`, args), { env })
        return stdout
      }
    }
  }
  return [makeNode(0), ...Array.from({ length: options.count - 1 }, (_, index) => makeNode(index + 1))]
}

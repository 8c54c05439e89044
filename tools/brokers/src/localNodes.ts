/** RabbitMQ nodes that are processes of this machine. */
import { execFile } from "node:child_process"
import { randomBytes } from "node:crypto"
import { once } from "node:events"
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs"
import { connect } from "node:net"
import { join } from "node:path"
import { promisify } from "node:util"
import type { Instance } from "./Instance.ts"
import type { Installation } from "./installation.ts"
import type { RabbitMqNode } from "./RabbitMqNode.ts"
import { handshake } from "./amqp.ts"
import * as processes from "./processes.ts"
import { untilReady } from "./ready.ts"

interface Options {
  readonly count: number
  readonly password: string
  readonly deadline: number
  readonly say: (line: string) => void
}

const run = promisify(execFile)

// In a tree the instance's folder appears here. Mounts are seen by the processes of the node only and end with them, so
// that nothing has to be unmounted, whoever is killed.
const mountPoint = "/mnt"
const enter = `set -e
mount --bind /proc "$1/proc"
mount --rbind /dev "$1/dev"
mount --bind "$2" "$1${mountPoint}"
root=$1
shift 2
exec chroot "$root" "$@"`

const configuration = (instance: Instance, index: number, options: Options): string =>
  [
    `listeners.tcp.1 = 127.0.0.1:${instance.port(3 * index + 1)}`,
    `management.tcp.ip = 127.0.0.1`,
    `management.tcp.port = ${instance.port(3 * index + 2)}`,
    "default_user = requeue",
    `default_pass = ${options.password}`,
    "log.console = false",
    // Counts of the management API are to be current.
    "collect_statistics_interval = 250",
    ...(options.count === 1 ? [] : ["cluster_formation.peer_discovery_backend = classic_config"]),
    ...Array.from({ length: options.count === 1 ? 0 : options.count }, (_, peer) => {
      return `cluster_formation.classic_config.nodes.${peer + 1} = n${peer + 1}@localhost`
    }),
    ""
  ].join("\n")

// What a node that starts cannot hand on yet, because a queue has no leader, it hands on again after this time, and not
// after the three minutes that are its default.
const advanced = "[{rabbit, [{dead_letter_worker_publisher_confirm_timeout, 5000}]}].\n"

const tail = (folder: string): string => {
  const files = readdirSync(folder).filter((name) => name.endsWith(".log"))
  const lines = files.flatMap((name) => readFileSync(join(folder, name), "utf8").trimEnd().split("\n").slice(-15))
  return lines.join("\n")
}

const knock = async (port: number): Promise<void> => {
  const socket = connect(port, "127.0.0.1")
  await once(socket, "connect").finally(() => socket.destroy())
}

export const make = (instance: Instance, installation: Installation, options: Options): ReadonlyArray<RabbitMqNode> => {
  const { root } = installation
  const home = root === undefined ? instance.folder : mountPoint
  writeFileSync(join(instance.folder, ".erlang.cookie"), randomBytes(16).toString("hex"), { mode: 0o400 })
  // In place of the machine's own, which may say anything.
  writeFileSync(join(instance.folder, "env.conf"), "")

  /** How to run a command where the installation is. */
  const inside = (command: string, args: ReadonlyArray<string>): [string, Array<string>] =>
    root === undefined
      ? [command, [...args]]
      : [
          "unshare",
          ["--mount", "--propagation", "private", "sh", "-c", enter, "sh", root, instance.folder, command, ...args]
        ]

  const common = {
    PATH: root === undefined ? (process.env["PATH"] ?? "") : "/usr/sbin:/usr/bin:/sbin:/bin",
    HOME: home,
    LANG: "C.UTF-8",
    // Every node of the instance, and nobody else.
    ERL_EPMD_PORT: String(instance.port(0)),
    ERL_EPMD_ADDRESS: "127.0.0.1"
  }

  let epmd: { readonly process: processes.Identity; readonly ready: Promise<void> } | undefined
  // Ours in the foreground: the one that a node starts is a daemon, of which we do not know the pid.
  const startEpmd = () => {
    if (epmd !== undefined && processes.isAlive(epmd.process)) return epmd.ready
    const process = instance.spawn(...inside("epmd", []), { env: common, output: "epmd.log" })
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

  return Array.from({ length: options.count }, (_, index) => {
    const name = `n${index + 1}`
    const port = instance.port(3 * index + 1)
    const url = `amqp://requeue:${options.password}@127.0.0.1:${port}/`
    const folder = join(instance.folder, name)
    const own = `${home}/${name}`
    mkdirSync(folder)
    writeFileSync(join(folder, "rabbitmq.conf"), configuration(instance, index, options))
    writeFileSync(join(folder, "advanced.config"), advanced)
    writeFileSync(join(folder, "enabled_plugins"), "[rabbitmq_management].\n")
    const env = {
      ...common,
      RABBITMQ_NODENAME: `${name}@localhost`,
      RABBITMQ_DIST_PORT: String(instance.port(3 * index + 3)),
      RABBITMQ_CONF_ENV_FILE: `${home}/env.conf`,
      RABBITMQ_CONFIG_FILE: `${own}/rabbitmq.conf`,
      RABBITMQ_ADVANCED_CONFIG_FILE: `${own}/advanced.config`,
      RABBITMQ_ENABLED_PLUGINS_FILE: `${own}/enabled_plugins`,
      RABBITMQ_MNESIA_BASE: `${own}/data`,
      RABBITMQ_LOGS: `${own}/server.log`,
      // With it the script becomes the Erlang VM instead of waiting for it, so that the pid is the VM's.
      RABBITMQ_ALLOW_INPUT: "1",
      RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: "-noinput -kernel inet_dist_use_interface {127,0,0,1}"
    }

    let vm: processes.Identity | undefined
    const isRunning = () => vm !== undefined && processes.isAlive(vm)
    const start = async () => {
      if (isRunning()) return
      await startEpmd()
      const started = instance.spawn(...inside(`${installation.scripts}/rabbitmq-server`, []), {
        env,
        output: `${name}/output.log`
      })
      vm = started
      await untilReady((milliseconds) => handshake(url, milliseconds), {
        ...options,
        what: `RabbitMQ ${installation.version} on 127.0.0.1:${port}`,
        isAlive: () => processes.isAlive(started),
        log: () => tail(folder),
        end: () => processes.kill([started])
      })
    }
    const kill = async () => {
      if (vm !== undefined) await processes.kill([vm])
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
      managementUrl: `http://requeue:${options.password}@127.0.0.1:${port + 1}/`,
      pid: () => (isRunning() ? vm?.pid : undefined),
      start,
      kill,
      stop,
      restart: async () => {
        await stop()
        await start()
      },
      log: async () => tail(folder),
      ctl: async (...args) => {
        const { stdout } = await run(...inside(`${installation.scripts}/rabbitmqctl`, args), { env })
        return stdout
      }
    }
  })
}

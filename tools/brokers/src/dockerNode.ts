/** A RabbitMQ node in a container. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { handshake } from "./amqp.ts"
import * as docker from "./docker.ts"
import type { Instance } from "./Instance.ts"
import type { RabbitMqNode } from "./RabbitMqNode.ts"
import { untilReady } from "./ready.ts"

interface Options {
  readonly image: string
  readonly password: string
  readonly deadline: number
  readonly say: (line: string) => void
}

export const make = async (instance: Instance, { image, password, deadline, say }: Options): Promise<RabbitMqNode> => {
  const [port, managementPort] = [instance.port(1), instance.port(2)]
  const file = join(instance.folder, "rabbitmq.conf")
  const lines = ["default_user = requeue", `default_pass = ${password}`, "collect_statistics_interval = 250", ""]
  writeFileSync(file, lines.join("\n"), { mode: 0o644 })
  const container = await docker.make(instance, {
    image,
    env: {},
    ports: { 5672: port, 15_672: managementPort },
    files: { "/etc/rabbitmq/conf.d/90-requeue.conf": file },
    say
  })
  const url = `amqp://requeue:${password}@127.0.0.1:${port}/`
  const start = async () => {
    await container.start()
    // Docker accepts connections on the port before the server does, and the container may end meanwhile.
    const what = `${image} on 127.0.0.1:${port}`
    const { isRunning: isAlive, log } = container
    await untilReady((milliseconds) => handshake(url, milliseconds), { what, deadline, isAlive, log, say })
  }
  return {
    name: "rabbit@requeue",
    url,
    tlsUrl: undefined,
    managementUrl: `http://requeue:${password}@127.0.0.1:${managementPort}/`,
    port,
    pid: () => undefined,
    start,
    kill: container.kill,
    stop: container.stop,
    restart: async () => {
      await container.stop()
      await start()
    },
    log: container.log,
    ctl: (...args) => container.exec("rabbitmqctl", ...args)
  }
}

/** ElasticMQ in a container. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import * as docker from "../docker.ts"
import type { Instance } from "../Instance.ts"
import { untilReady } from "../ready.ts"
import { local } from "./address.ts"
import { configuration } from "./elasticmq.ts"
import { handshake } from "./handshake.ts"
import type { SqsNode } from "./SqsNode.ts"

interface Options {
  readonly image: string
  readonly secret: string
  readonly deadline: number
  readonly say: (line: string) => void
}

const inside = 9324

export const make = async (instance: Instance, { image, secret, deadline, say }: Options): Promise<SqsNode> => {
  const port = instance.port(1)
  const file = join(instance.folder, "elasticmq.conf")
  writeFileSync(file, configuration("0.0.0.0", inside), { mode: 0o644 })
  const container = await docker.make(instance, {
    image,
    env: {},
    ports: { [inside]: port },
    files: { "/opt/elasticmq.conf": file },
    say
  })
  const url = local(port, secret)
  const start = async () => {
    await container.start()
    const what = `${image} on 127.0.0.1:${port}`
    const { isRunning: isAlive, log } = container
    await untilReady((milliseconds) => handshake(url, milliseconds), { what, deadline, isAlive, log, say })
  }
  return {
    name: "elasticmq",
    url,
    managementUrl: undefined,
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
    forward: undefined
  }
}

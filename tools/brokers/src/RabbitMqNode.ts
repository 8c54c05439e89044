import type { Broker, Node } from "./Broker.ts"
import type { Certificate } from "./certificates.ts"

/** The server's certificate, and that of the authority of its clients. */
export interface Certificates extends Certificate {
  /** As PEM text. */
  readonly ca: string
}

export interface RabbitMqNode extends Node {
  /** Its address with TLS, if it was started with certificates. Clients with a certificate may log in with it: `EXTERNAL`. */
  readonly tlsUrl: string | undefined
  /** Runs `rabbitmqctl` against it and returns its output. */
  readonly ctl: (...args: ReadonlyArray<string>) => Promise<string>
}

export type RabbitMqBroker = Broker<RabbitMqNode>

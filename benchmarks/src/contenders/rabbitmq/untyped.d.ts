/** The used part of rascal's API, which has no types. */
declare module "rascal" {
  import type { EventEmitter } from "node:events"

  interface Broker extends EventEmitter {
    subscribe(name: string, options?: object): Promise<EventEmitter>
    publish(name: string, content: unknown, options?: object): Promise<EventEmitter>
    shutdown(): Promise<void>
  }

  const rascal: {
    readonly BrokerAsPromised: { create(config: object): Promise<Broker> }
    withDefaultConfig(config: object): object
  }
  export default rascal
}

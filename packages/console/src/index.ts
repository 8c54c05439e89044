/** The console: queues and dead letters of every broker in a browser. Programs without Effect need only `openConsole`. */
export * as Audit from "./Audit.ts"
export * as Authorization from "./Authorization.ts"
export * as BrokerSource from "./BrokerSource.ts"
export * as Console from "./Console.ts"
export * as NodeServer from "./NodeServer.ts"
export * as Redaction from "./Redaction.ts"
export { openConsole, type OpenConsole } from "./promise.ts"

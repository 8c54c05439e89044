/**
 * The parts to build adapters with, in addition to the port of `@requeue/core/port`.
 *
 * When to use: to write an adapter for another broker.
 */
export * as AdapterOptions from "./AdapterOptions.ts"
export * as Browser from "./Browser.ts"
export * as NativeOptions from "./NativeOptions.ts"
export * as OptionTree from "./OptionTree.ts"
export * as PageSize from "./PageSize.ts"
export * as Reconnecting from "./Reconnecting.ts"
export * as Settling from "./Settling.ts"
export * as SqlBrowser from "./SqlBrowser.ts"
export * as SqlCommand from "./SqlCommand.ts"
export * as SqlErrors from "./SqlErrors.ts"
export * as SqlMessage from "./SqlMessage.ts"
export * as TlsOptions from "./TlsOptions.ts"
export * as Wakeups from "./Wakeups.ts"

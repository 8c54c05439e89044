/**
 * The parts that adapters are built with, beside the port of `@requeue/core/port`.
 *
 * When to use: to write an adapter for a broker of your own.
 */
export * as AdapterOptions from "./AdapterOptions.ts"
export * as Browser from "./Browser.ts"
export * as NativeOptions from "./NativeOptions.ts"
export * as OptionTree from "./OptionTree.ts"
export * as PageSize from "./PageSize.ts"
export * as Reconnecting from "./Reconnecting.ts"
export * as TlsOptions from "./TlsOptions.ts"

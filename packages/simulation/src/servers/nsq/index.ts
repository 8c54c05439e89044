/** A simulated nsqd, nsqlookupd and network, and the adapter's driver over them. */
export * as Commands from "./Commands.ts"
export * as Driver from "./Driver.ts"
export type * as Facts from "./Facts.ts"
export type * as Flags from "./Flags.ts"
export * as Lookupd from "./Lookupd.ts"
export * as Network from "./Network.ts"
export * as Nsqd from "./Nsqd.ts"

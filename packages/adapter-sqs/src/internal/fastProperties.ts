/**
 * Makes an object cheap to copy. V8 keeps one that was assembled piece by piece as a hash table: to copy the 46 properties of
 * the SDK's configuration takes 10 microseconds, and 1 once the object has a layout. V8 lays it out when an object that inherits
 * from it is enumerated. Nothing that a program can see of it changes, on any engine.
 */
export const makeFast = (object: object): void => {
  for (const _ in Object.create(object)) break
}

/**
 * Things of a moment, such as the requests in flight, in no order. A `Set` makes a new table after some additions and removals, and each old one still points
 * to its members and to the next table. Once one of them is in the old generation of the heap, everything that was in any of them stays there until
 * the next full garbage collection: a third of all memory that small reads used. An array leaves nothing behind.
 */
export class Bag<T extends Member> implements Iterable<T> {
  readonly #members: T[] = []

  get size(): number {
    return this.#members.length
  }

  /** Adds a member that is in no bag. */
  add(member: T): void {
    member.place = this.#members.length
    this.#members.push(member)
  }

  /** Removes a member, if it is there. */
  delete(member: T): void {
    const { place } = member
    if (place === undefined || this.#members[place] !== member) return
    const last = this.#members.pop()
    if (last !== undefined && last !== member) {
      this.#members[place] = last
      last.place = place
    }
    member.place = undefined
  }

  /** Iterates over the members as they are at the moment: they may leave meanwhile. */
  [Symbol.iterator](): Iterator<T> {
    return [...this.#members].values()
  }
}

interface Member {
  /** Index in its bag, set by the bag. */
  place?: number | undefined
}

/**
 * Lets lists take from memory the facts that a watch confirms to be unchanged. The kernel queues an event with the change that causes it, so
 * once the thread of the watch has handled all queued events, each directory without an event is unchanged. Confirmed facts are
 * kept for the time of `reconcile`, since some changes have no event: a write through a memory map, or by another name of the file.
 */

/** Directories that began to be watched or changed (true), and that are not watched any more (false), by identity. */
export type Dues = readonly (readonly [identity: string, watched: boolean])[]

/** Collects, in the thread of the watch, the facts for the main thread. */
export interface Ledger {
  /** Records that a directory is watched from now on, or may have changed. */
  touch(identity: string): void
  /** Records that a directory is not watched any more. */
  lose(identity: string): void
  /** Returns what was recorded since the last call. */
  take(): Dues
}

export function createLedger(): Ledger {
  /** Directories that the main thread takes to be watched. */
  const told = new Set<string>()
  const dues = new Map<string, boolean>()
  return {
    touch: (identity) => dues.set(identity, true),
    lose: (identity) => {
      // The main thread need not hear of a directory that it does not know.
      if (told.has(identity)) dues.set(identity, false)
      else dues.delete(identity)
    },
    take: () => {
      const taken = [...dues]
      dues.clear()
      for (const [identity, watched] of taken) {
        if (watched) told.add(identity)
        else told.delete(identity)
      }
      return taken
    },
  }
}

/**
 * Returns the state of a directory by its identity: a number that differs after any change in it; undefined when the directory has no
 * reliable watch. It holds for the moment of the question.
 */
export type Confirmed = (identity: string) => number | undefined

/** The states of the directories of one watch, in the main thread. */
export interface Confirmations {
  /**
   * Asks the thread of the watch. Resolves to undefined when it does not answer in time: then the files must be examined.
   *
   * @param files Number of files to examine otherwise. The time-out is the time that this takes, within bounds.
   */
  ask(files?: number): Promise<Confirmed | undefined>
  /** Handles the answer of the thread. */
  answered(dues: Dues): void
  close(): void
}

/** How long to wait for an answer, in milliseconds: after that, looking at the files is faster. */
const [shortestWaitMs, longestWaitMs, lookMs] = [5, 50, 0.005]

/** @param send Asks the thread for its dues once it has handled all queued events. */
export function createConfirmations(send: () => void): Confirmations {
  const states = new Map<string, number>()
  let changes = 0
  let closed = false
  interface Question {
    readonly answer: Promise<boolean>
    readonly settle: (answered: boolean) => void
  }
  const createQuestion = (): Question => {
    let settle = (_: boolean) => {}
    const answer = new Promise<boolean>((resolve) => {
      settle = resolve
    })
    return { answer, settle }
  }
  let asked: Question | undefined
  /**
   * The next question, shared by all callers that come while another question is pending: the pending one may not cover the
   * changes that they know of.
   */
  let next: Question | undefined

  const begin = (question: Question): Question => {
    asked = question
    send()
    return question
  }

  return {
    ask: async (files = 0) => {
      if (closed) return undefined
      const question = asked === undefined ? begin(createQuestion()) : (next ?? createQuestion())
      if (question !== asked) next = question
      let timer: NodeJS.Timeout | undefined
      const late = new Promise<false>((resolve) => {
        timer = setTimeout(resolve, Math.min(longestWaitMs, Math.max(shortestWaitMs, files * lookMs)), false)
      })
      const isAnswered = await Promise.race([question.answer, late])
      clearTimeout(timer)
      return isAnswered && !closed ? (identity) => states.get(identity) : undefined
    },
    answered: (dues) => {
      for (const [identity, watched] of dues) {
        if (watched) states.set(identity, ++changes)
        else states.delete(identity)
      }
      const answered = asked
      asked = undefined
      if (next !== undefined) begin(next)
      next = undefined
      answered?.settle(true)
    },
    close: () => {
      closed = true
      states.clear()
      asked?.settle(false)
      next?.settle(false)
    },
  }
}

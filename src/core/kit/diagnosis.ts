/** The result of one check. A fault has a fix: the next command, or a change and its place. */
export interface Diagnosis {
  readonly check: string
  readonly status: 'ok' | 'warning' | 'failed'
  readonly found: string
  readonly fix?: string
}

/** A result before it has the name of its check. */
export type Found = Omit<Diagnosis, 'check'>

/** Takes the result of a check. */
export type Tell = (check: string, found: Found) => void

export const ok = (found: string): Found => ({ status: 'ok', found })
export const failed = (found: string, fix: string): Found => ({ status: 'failed', found, fix })
export const warning = (found: string, fix: string): Found => ({ status: 'warning', found, fix })

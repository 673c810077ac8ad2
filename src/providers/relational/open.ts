import { invalid, isResourceError, type ResourceError } from '../../core/errors.ts'
import { defined } from '../../core/kit/defined.ts'
import type { Log } from '../../core/log.ts'
import type { Provider } from '../../core/provider.ts'
import { type RelationalOptions, relational } from './index.ts'
import type { Pool } from './pool.ts'

export interface Opening<C> extends Omit<RelationalOptions, 'rows' | 'watch' | 'reconcile'> {
  readonly pool: Pool<C>
  /** Whether an operator has to mend something: trying again does not help. */
  readonly isFault: (error: ResourceError) => boolean
  /** Returns the text that reports a fault. Default: its message. */
  readonly explain?: (error: ResourceError) => string
  readonly options: Partial<Pick<RelationalOptions, 'rows' | 'watch' | 'reconcile'>> & { readonly log?: Log }
}

/**
 * Opens a provider over a source, after a first connection attempt. A database that does not answer now is not an error: each use
 * tries again.
 *
 * @throws ResourceError `invalid` for a fault that the operator must correct.
 */
export async function openRelational<C>(opening: Opening<C>): Promise<Provider> {
  const { source, pool, isFault, explain = ({ message }) => message, options } = opening
  try {
    await pool.use(new AbortController().signal, async () => {})
  } catch (error) {
    if (!isResourceError(error)) throw error
    if (isFault(error)) {
      await source.close()
      throw invalid(explain(error), 'database')
    }
    options.log?.('warn', 'the database does not answer: it is asked again when somebody asks', {
      reason: error.message,
    })
  }
  const { rows, watch, reconcile } = options
  return relational({
    source,
    ...defined({ rows, watch, reconcile }),
  })
}

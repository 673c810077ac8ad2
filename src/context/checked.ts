import { invalid } from '../core/errors.ts'
import { encodings } from './tokens.ts'
import { type AssembleOptions, defaultLimits, formats, type Limits, levels } from './types.ts'

/**
 * Validates the options and returns the limits.
 *
 * @throws ResourceError `invalid`, which names each fault.
 */
export function checked(options: AssembleOptions): Limits {
  const { budget, reserve = 0.03, cap = 1, encoding = 'o200k_base', format = 'markdown', now, halfLife = 1 } = options
  const limits = { ...defaultLimits, ...options.limits }
  const isCount = (value: number) => Number.isSafeInteger(value) && value >= 0
  const faults = [
    isCount(budget) ? '' : 'budget: not a whole number of tokens',
    reserve >= 0 && reserve <= 0.5 ? '' : 'reserve: not from 0 to 0.5',
    isCount(cap) ? '' : 'cap: not a whole number of tokens',
    encodings.includes(encoding) ? '' : `encoding: not one of ${encodings.join(', ')}`,
    formats.includes(format) ? '' : `format: not one of ${formats.join(', ')}`,
    Number.isFinite(now) ? '' : 'now: not a time in milliseconds',
    halfLife > 0 ? '' : 'halfLife: not above 0',
    (options.pins ?? []).every((pin) => typeof pin === 'string' || levels.includes(pin.level ?? 'full'))
      ? ''
      : `pins: a level is not one of ${levels.join(', ')}`,
    (options.pins ?? []).some((pin) => (typeof pin === 'string' ? pin : pin.uri).endsWith('/'))
      ? 'pins: a folder is none'
      : '',
    Object.values(limits).every(isCount) && limits.concurrency > 0 && limits.items <= 999
      ? ''
      : 'limits: not whole numbers, no concurrency, or more than 999 items',
  ].filter((fault) => fault !== '')
  if (faults.length > 0) throw invalid(faults.join('; '), 'options')
  return limits
}

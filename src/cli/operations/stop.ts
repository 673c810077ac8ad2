import type { Log } from '../../core/log.ts'

/** Turns SIGTERM, SIGINT and SIGHUP into an abort, so that requests in flight can be answered first. */
interface Stop {
  readonly signal: AbortSignal
  /** Restores the default handling of the signals. */
  done(): void
}

const ignore = () => {}

const signals = { SIGINT: 2, SIGTERM: 15, SIGHUP: 1 } as const

export function createStop(log: Log): Stop {
  const controller = new AbortController()
  const onSignal = (name: keyof typeof signals) => {
    // A second signal ends the process at once, with 128 + its number as shells expect.
    if (controller.signal.aborted) process.exit(128 + signals[name])
    log('info', 'stopping', { signal: name })
    controller.abort()
  }
  const onException = (error: unknown) => {
    log('error', 'stopped by a fault of hikidashi', { error })
    process.exit(1)
  }
  const onRejection = (error: unknown) => log('error', 'a task failed that nobody waited for', { error })
  for (const name of Object.keys(signals)) process.on(name, onSignal)
  // By default, Node would open a debugger on this signal, which can read all memory of the process.
  process.on('SIGUSR1', ignore)
  process.on('uncaughtException', onException)
  process.on('unhandledRejection', onRejection)
  return {
    signal: controller.signal,
    done: () => {
      for (const name of Object.keys(signals)) process.off(name, onSignal)
      process.off('SIGUSR1', ignore)
      process.off('uncaughtException', onException)
      process.off('unhandledRejection', onRejection)
    },
  }
}

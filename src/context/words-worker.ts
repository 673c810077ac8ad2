import { parentPort } from 'node:worker_threads'
import { bagOf } from '../text/words.ts'

parentPort?.on('message', (texts: readonly string[]) => parentPort?.postMessage(texts.map(bagOf)))
parentPort?.postMessage('ready')

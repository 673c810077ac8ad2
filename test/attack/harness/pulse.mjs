// The control client (oracle O2), in its own thread, so that a busy test does not delay it.
import { readFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { parentPort, workerData } from 'node:worker_threads'

const { url, pid, headers, body, expected, every } = workerData
const agent = new Agent({ keepAlive: true, maxSockets: 1 })

/** Duration of each read, and the CPU time of the server's main thread during it, in milliseconds. */
let waits = []
let faults = []
/** Start time of the pending read. */
let began

const now = () => ({ time: performance.now(), work: workOf(pid) })
const since = (then) => {
  const { time, work } = now()
  return { time: time - then.time, work: Math.min(time - then.time, work - then.work) }
}

/** Returns the CPU time of the main thread of a process so far. The system counts in hundredths of a second. */
function workOf(process) {
  try {
    const stat = readFileSync(`/proc/${process}/task/${process}/stat`, 'utf8')
    const [user, system] = stat.slice(stat.lastIndexOf(')')).split(' ').slice(12, 14)
    return (Number(user) + Number(system)) * 10
  } catch {
    return 0
  }
}

function read() {
  began = now()
  const done = (fault) => {
    if (began === undefined) return
    waits.push(since(began))
    if (fault !== undefined && faults.length < 5) faults.push(fault)
    began = undefined
    setTimeout(read, every)
  }
  const sent = request(url, { method: 'POST', agent, headers }, (response) => {
    let text = ''
    response.setEncoding('utf8')
    response.on('data', (chunk) => {
      text += chunk
    })
    response.on('end', () => done(text.includes(expected) ? undefined : `${response.statusCode} ${text.slice(0, 200)}`))
    response.on('error', (error) => done(String(error)))
  })
  // If the server closed an idle connection, the request is sent again on a new one.
  sent.on('error', (error) => done(error.code === 'ECONNRESET' && sent.reusedSocket ? undefined : String(error)))
  sent.end(body)
}

parentPort.on('message', () => {
  const pending = began === undefined ? [] : [since(began)]
  parentPort.postMessage({ waits: [...waits, ...pending], faults })
  waits = []
  faults = []
})
read()

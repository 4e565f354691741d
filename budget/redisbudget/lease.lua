-- One lease from a pool: a bucket of tokens on one hash, refilled by Redis' own clock. A key that was lost starts
-- empty, so that no failure of Redis grants more than the rate.
-- KEYS[1]  the pool
-- ARGV     rate, millionths of a token per second; wanted; least; covered, ms since the client's last report
local now = redis.call('TIME')
now = now[1] * 1000 + math.floor(now[2] / 1000)
local rate, wanted, least, covered = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local kept = redis.call('HMGET', KEYS[1], 'tokens', 'at', 'slot', 'covered', 'clients')
local tokens, at, slot = tonumber(kept[1]) or 0, tonumber(kept[2]) or now, tonumber(kept[3]) or now
local sum, clients = (tonumber(kept[4]) or 0) + covered, tonumber(kept[5]) or 0

-- A second of the pool may lie there, and ten tokens, so that the dearest retry of a small pool can be paid. A clock
-- that goes back adds nothing.
tokens = math.min(tokens + rate * math.max(now - at, 0) / 1000, math.max(rate, 10000000))
local granted = 0
if wanted > 0 and tokens >= least then
  granted = math.floor(math.min(wanted, tokens))
  tokens = tokens - granted
end

-- Each client covers, by its reports, all the time that it lives. So the time that was covered in a slot, by that of
-- the slot, is how many there are. Until a slot has ended, at least as many as it has seen.
local width, length = math.max(now - slot, 0), 30000
local seen = sum / math.max(width, length)
if width >= length then
  clients, sum, slot = seen, 0, now
end
redis.call('HSET', KEYS[1], 'tokens', string.format('%.0f', tokens), 'at', now, 'slot', slot,
  'covered', string.format('%.0f', sum), 'clients', string.format('%.3f', clients))
redis.call('PEXPIRE', KEYS[1], 600000)
return {granted, string.format('%.3f', math.max(clients, seen))}

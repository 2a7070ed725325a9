-- Sends a job to the partition where it should run, by the table that 'crossperf slurm table' writes.
--
-- Runs inside slurmctld, so: Lua 5.1 to 5.4, no program is started, no socket opened, one small file is read, and
-- whatever goes wrong leaves the job as the user sent it. place() never raises and never refuses a job.

--@settings@

local VERSION = "2"
local HEADER = #"crossperf-table\t2\t0000000000\t0000000000\t0123456789abcdef\n"
local PIECE, LONGEST_TAIL = 4096, 1024 * 1024 -- in bytes
local PRIME, LANES = 67108859, { 40503, 15485863, 32452843, 49979687 } -- as in table.py
local UP, NEEDS_RESERVATION = 3, 16 -- PARTITION_UP and PART_FLAG_REQ_RESV of slurm.h
-- Partitions that take up to so many times as long as the fastest are in a list: of 2, 4 and 8 the best, by far before 2.
local LIST_FACTOR = 4
-- A job that would take longer than this stays as it is: slurmctld answers nobody else while it waits for this code.
-- Functions in C are not counted, so every pattern here takes time in proportion to a text of bounded length.
local MOST_INSTRUCTIONS = 300000
local LONGEST_FIELD, LONGEST_ARGUMENT, MOST_ARGUMENTS = 1024, 128, 15

local unpack = unpack or table.unpack -- moved in Lua 5.2

local set = function(names)
  local members = {}
  for _, name in ipairs(names) do members[name] = true end
  return members
end
local LAUNCHERS, PREFIXES = set(WORDS.launchers), set(WORDS.prefixes)
local INTERPRETERS, SHELL = set(WORDS.interpreters), set(WORDS.shell)
local GENERAL, ENDINGS = set(WORDS.general), set(WORDS.endings)

-- A number that the user gave, or nil: Slurm writes a huge one for "not given".
local function given(value, nothing)
  value = tonumber(value)
  if value and value >= 0 and value < nothing then return value end
  return nil
end

-- The table -----------------------------------------------------------------------------------------------------------

local function hex(character) return ("%%%02X"):format(character:byte()) end

local function escaped(text) return (text:gsub("[%c%%,;\127]", hex)) end

local function unescaped(text)
  return (text:gsub("%%(%x%x)", function(hex) return string.char(tonumber(hex, 16)) end))
end

-- The same sum as in table.py; one flipped byte or two swapped ones change it. Two bytes at a time stay exact in floats.
local byte = string.byte
local function checksum(text)
  local sum, whole = 0, #text - #text % 4
  for i = 1, whole, 4 do
    local a, b, c, d = byte(text, i, i + 3)
    sum = (sum * 66049 + a * 257 + b) % 4294967291
    sum = (sum * 66049 + c * 257 + d) % 4294967291
  end
  for i = whole + 1, #text do sum = (sum * 257 + byte(text, i)) % 4294967291 end
  return ("%08x"):format(sum)
end

local function split(text, mark)
  local fields = {}
  for field in (text .. mark):gmatch("([^" .. mark .. "]*)" .. mark) do fields[#fields + 1] = field end
  return fields
end

-- The fields of the first line that starts so, or nil where there is none or it is not as it was written.
local function line(text, start)
  local at = text:find("\n" .. start .. "\t", 1, true)
  local body, sum = (at and text:match("^[^\n]*", at + 1) or ""):match("^(.*)\t(%x+)$")
  if not body or checksum(body) ~= sum then return nil end
  return split(body, "\t")
end

-- Open a file without waiting. A pipe that is opened for reading alone waits for a writer, and the controller with it;
-- opened for both it does not. Who may not write falls back, as the file is then not one that anybody here put there.
local ONLY_READABLE = { [1] = true, [13] = true, [26] = true, [30] = true } -- EPERM, EACCES, ETXTBSY, EROFS
local function open_at_once(path)
  local file, problem, number = io.open(path, "r+b")
  if not file and ONLY_READABLE[number] then file, problem, number = io.open(path, "rb") end
  if file then return file end
  if number == 2 then return nil, "there is no table at " .. path end
  return nil, "the table cannot be read (" .. tostring(problem) .. ")"
end

-- Open the table and read what stands in its last lines: about the site and its partitions.
local function open_table(path)
  local file, problem = open_at_once(path)
  if not file then return nil, problem end
  local size = file:seek("end") -- before anything is read: a pipe or a terminal has no end to go to
  if not size or not file:seek("set", 0) then
    file:close()
    return nil, path .. " is no regular file"
  end
  local header = size >= HEADER and file:read(HEADER)
  local version, length, keys_end, digest = (header or ""):match("^crossperf%-table\t(%d+)\t(%d+)\t(%d+)\t(%x+)\n$")
  local rest = keys_end and size - tonumber(keys_end)
  local tail
  if version == VERSION and tonumber(length) == size and rest > 0 and rest < LONGEST_TAIL then
    file:seek("set", tonumber(keys_end) - 1)
    tail = file:read(rest + 1)
  end
  local site = tail and tail:sub(-#digest - 6) == "\nend\t" .. digest .. "\n" and line(tail, "site")
  if not site then
    file:close()
    return nil, path .. " is torn or of another version"
  end
  return { file = file, keys_end = tonumber(keys_end), tail = tail, site = site }
end

-- The sums over a key that stand in its place, the same as in table.py.
local function digest_of(salt, app, user, input)
  local text = table.concat({ salt, escaped(app), escaped(user), escaped(input) }, "\t")
  local w, x, y, z = 1, 1, 1, 1
  local k, l, m, n = unpack(LANES)
  for i = 1, #text do
    local b = byte(text, i)
    w, x = (w * w + b * k + 1) % PRIME, (x * x + b * l + 2) % PRIME
    y, z = (y * y + b * m + 3) % PRIME, (z * z + b * n + 4) % PRIME
  end
  return ("%07x%07x%07x%07x"):format(w, x, y, z)
end

-- The line of a key. Lines are sorted and no longer than half a piece, so that a few pieces tell where it must be,
-- however large the table is.
local function key_line(opened, app, user, input)
  local digest = digest_of(opened.site[6], app, user, input)
  local wanted, from, to = tonumber(digest:sub(1, 7), 16), HEADER - 1, opened.keys_end
  while to - from > PIECE do
    local middle = math.floor((from + to) / 2)
    opened.file:seek("set", middle)
    local next_digest = (opened.file:read(PIECE) or ""):match("\nkey\t(%x+)\t")
    if next_digest and tonumber(next_digest:sub(1, 7), 16) < wanted then from = middle else to = middle end
  end
  opened.file:seek("set", from)
  return line(opened.file:read(to - from + 2 * PIECE) or "", "key\t" .. digest)
end

-- What a job is called ------------------------------------------------------------------------------------------------

local function words_of(comment)
  local words, from = {}, 1
  comment = " " .. (comment or ""):sub(1, WORDS.longest_comment)
  while true do
    local _, at, name = comment:find("[%s;](%a+)=", from)
    if not at then return words end
    local value, after = comment:match('^"([^"]+)"()', at + 1)
    if not value then value, after = comment:match("^([^%s;]+)()", at + 1) end
    if value and not words[name] then words[name] = unescaped(value) end
    from = after or at
  end
end

-- A pattern that ends in $ alone would try every place of the text; from the other end there is one place to try.
local function without_end(text, class) return text:reverse():gsub("^" .. class .. "+", ""):reverse() end

local function base(path) return path:reverse():match("^/*([^/]*)"):reverse() end

-- The program that a command line runs, or nil: past assignments, launchers and their options. And whether a launcher
-- starts it, and how many words it looked at, of `most`.
local function program_of(command, most)
  local launched, interpreter, skip, module, seen = false, nil, 0, false, 0
  for word in command:gmatch("%S+") do
    if seen == most then return nil, false, seen end
    seen = seen + 1
    word = word:gsub("^[\"']", ""):gsub("[\"']$", "")
    local name = base(word)
    if skip > 0 then
      skip = skip - 1
    elseif module then
      return word, launched, seen
    elseif word:find("^[|;&<>(){}]") then
      return interpreter, launched, seen
    elseif word:find("^[%a_][%w_]*=") then -- an assignment before the command
    elseif word:find("^%-") then
      if interpreter then module = word == "-m" else skip = WORDS.values[word] or 0 end
    elseif word:find("[$`]") then
      return interpreter, launched, seen
    elseif not interpreter and LAUNCHERS[name] then
      launched = true
    elseif not interpreter and PREFIXES[name] then -- time ./a.out is ./a.out
    elseif not interpreter and INTERPRETERS[without_end(name, "[%d.]")] then
      interpreter = name
    elseif not launched and not interpreter and SHELL[word] then
      return nil, false, seen
    else
      return name ~= "" and name or nil, launched, seen
    end
  end
  return interpreter, launched, seen
end

-- The program of a batch script: of the first line with a launcher, or else of the first command.
local function executable(script)
  local first
  local text, left = (script or ""):sub(1, WORDS.longest):gsub("\\\n", " "), WORDS.most
  for command in text:gmatch("[^\n]+") do
    if not command:find("^%s*#") then
      local program, launched, seen = program_of(command, left)
      if program and launched then return program end
      first, left = first or program, left - seen
      if left == 0 then break end
    end
  end
  return first
end

-- Whether jobs of many programs bear a name.
local function is_general(name)
  return GENERAL[name:lower()] or ENDINGS[(name:lower():match("%.[^.]*$"))] or INTERPRETERS[without_end(name, "[%d.]")]
end

-- A sum over what a job was told to do, without remarks, so that a partition named in one does not count: jobs with the
-- same sum did the same work. Nil where that is not known.
local function work_of(job)
  local script, arguments = job.script, job.argv
  if not script and not arguments then return nil end
  local text = ("\n" .. (script or ""):sub(1, WORDS.longest)):gsub("\n#[^\n]*", "")
  local words = { text:sub(1, 2 * LONGEST_FIELD), text:sub(-LONGEST_FIELD), #text }
  for i = 0, MOST_ARGUMENTS do words[#words + 1] = tostring(arguments and arguments[i] or ""):sub(1, LONGEST_ARGUMENT) end
  return checksum(table.concat(words, "\n"))
end

local function input_class(nodes)
  local class = 1
  while class < nodes do class = class * 2 end
  return ("nodes-%d"):format(class)
end

-- What the job may be called, likeliest first; what it works on; whether it wants no advice; and a sum over its work.
local function named(job)
  local words, apps = words_of(job.comment), {}
  if words.crossperf == "off" then return apps, "", true end
  local function guess(name)
    if name and name ~= "" and #name <= WORDS.longest_name then apps[#apps + 1] = name end
  end
  if words.app then
    guess(words.app)
  else
    local program = executable(job.script)
    if program and not is_general(program) then guess(program) end
    if job.name and not is_general(job.name) then guess(job.name) end
  end
  local nodes = given(job.min_nodes, slurm.NO_VAL or 4294967294) or 1
  local said = words.input and #words.input <= WORDS.longest_name and words.input
  return apps, said or input_class(nodes), false, work_of(job)
end

-- The most special key that the table has.
local function find(opened, apps, user, input)
  for _, app in ipairs(apps) do
    for _, key in ipairs({ { user, input }, { "", input }, { "", "" } }) do
      local row = key_line(opened, app, key[1], key[2])
      if row then return app, row end
    end
  end
  return nil
end

-- What a partition can take -------------------------------------------------------------------------------------------

local function listed(names, name)
  for _, word in ipairs(split(names, ",")) do
    if word == name then return true end
  end
  return false
end

-- Whether a list of those allowed, or of those denied, keeps a name out.
local function barred(allowed, denied, name)
  if allowed and allowed ~= "" and not listed(allowed, name or "") then return true end
  return denied and denied ~= "" and name and listed(denied, name)
end

-- Whether a partition's nodes, `times` of them, offer what a list such as 'gres:gpu:2,gres:nvme:1' asks for.
local function offers(offered, wanted, times)
  for _, resource in ipairs(split(wanted, ",")) do
    resource = resource:gsub("^gres[:/]", "")
    local name, count = resource:match("^(.-)[:=](%d+)$")
    local has = tonumber(("," .. offered .. ","):match("," .. (name or resource):gsub("%p", "%%%0") .. "=(%d+),"))
    if not has or has * times < tonumber(count or 1) then return false end
  end
  return true
end

local function has_features(offered, wanted)
  if wanted:find("[^%w%._&,%-]") then return false end -- or, not, counts: not for us to judge
  for name in wanted:gmatch("[^&,]+") do
    if not listed(offered, name) then return false end
  end
  return true
end

-- What a partition grants of something, or infinity where it sets no bound.
local function bound(value, nothing)
  value = given(value, nothing)
  return value and value > 0 and value or math.huge
end

-- The processors of each task, from Slurm 23.11 on also named in tres_per_task, as 'cpu=4'.
local function per_task(job)
  local count = given(job.cpus_per_task, slurm.NO_VAL16 or 65534) or 1
  local named_count = tostring(job.tres_per_task or ""):match("^cpu[=:](%d+)")
  return math.max(count, tonumber(named_count or 1))
end

-- Whether the nodes, processors and memory of a partition are enough.
local function roomy(job, part, facts, total)
  local none, none16, infinite = slurm.NO_VAL or 4294967294, slurm.NO_VAL16 or 65534, slurm.INFINITE or 4294967295
  local nodes = given(job.min_nodes, none) or 1
  local most = math.min(total, given(job.max_nodes, none) or total)
  local cpus, memory = tonumber(facts[5]), tonumber(facts[6])
  local granted = math.min(bound(part.max_cpus_per_node, none), bound(part.max_cpus_per_socket, none16))
  local wanted = given(job.min_cpus, none) or 1
  local per_node = math.max(
    given(job.pn_min_cpus, none16) or 1,
    (given(job.ntasks_per_node, none16) or 1) * per_task(job),
    math.ceil(wanted / math.max(most, 1))
  )
  if nodes > total or most < 1 or per_node > granted then return false end
  if granted < infinite and job.shared == 0 then return false end -- the whole node is more than is granted
  if (wanted > 1 or per_node > 1) and not (cpus and per_node <= cpus) then return false end
  local of_cpu = given(job.min_mem_per_cpu, 2 ^ 62) or 0
  local mem = math.max(given(job.min_mem_per_node, 2 ^ 62) or 0, of_cpu * per_node)
  local most_of_cpu = bound(part.max_mem_per_cpu, 2 ^ 62)
  if of_cpu > most_of_cpu or mem > math.min(bound(part.max_mem_per_node, 2 ^ 62), most_of_cpu * per_node) then
    return false
  end
  return mem == 0 or (memory ~= nil and mem <= memory)
end

-- Whether a job without a word on memory gets at least as much there as in the default partition.
local function remembers(job, part, default_part)
  if job.min_mem_per_cpu or job.min_mem_per_node then return true end
  for _, field in ipairs({ "def_mem_per_cpu", "def_mem_per_node" }) do
    local there, here = part[field], default_part[field]
    if there ~= here and not (there and here and here > 0 and (there == 0 or there >= here)) then return false end
  end
  return true
end

-- The limit of a job in minutes: what it asks for, or what the default partition would have given it; nil: not known.
local function limit_of(job, default_part)
  local none = slurm.NO_VAL or 4294967294
  if job.time_limit and job.time_limit ~= none then return job.time_limit end
  if not default_part then return nil end
  local default_time = default_part.default_time
  return default_time and default_time ~= none and default_time or default_part.max_time
end

-- Whether a job may be sent to a partition that is not the default one, by what is set for the partition.
local function lets_in(job, part, facts, default_part)
  local infinite, limit = slurm.INFINITE or 4294967295, limit_of(job, default_part)
  if not default_part or not limit or limit > (given(part.max_time, infinite) or infinite) then return false end
  if (given(job.min_nodes, slurm.NO_VAL or 4294967294) or 1) < (given(part.min_nodes, infinite) or 0) then return false end
  if math.floor((part.flags or 0) / NEEDS_RESERVATION) % 2 == 1 then return false end
  if facts[12] ~= "-" or ((part.qos or "") ~= "" and escaped(part.qos) ~= facts[11]) then return false end
  local from = part.allow_alloc_nodes
  if from and from ~= "" and from ~= "ALL" and from ~= default_part.allow_alloc_nodes then
    if not listed(from, job.alloc_node or "") then return false end
  end
  if barred(part.allow_accounts, part.deny_accounts, job.account or job.default_account) then return false end
  if barred(part.allow_qos, part.deny_qos, job.qos or job.default_qos) then return false end
  return remembers(job, part, default_part)
end

-- Whether the nodes of a partition have what a job asks for: what is not known counts as not there.
local function can_run(job, part, facts)
  local infinite = slurm.INFINITE or 4294967295
  local total = math.min(given(part.total_nodes, infinite) or 0, given(part.max_nodes, infinite) or infinite)
  if job.features and not has_features(facts[7], job.features) then return false end
  if job.tres_per_node and not offers(facts[8], job.tres_per_node, 1) then return false end
  if job.tres_per_job and not offers(facts[8], job.tres_per_job, total) then return false end
  return roomy(job, part, facts, total)
end

local function asks_for_gres(job) return (job.tres_per_node or "") ~= "" or (job.tres_per_job or "") ~= "" end

-- Whether a job may be sent to a partition; in the default one it may stay whatever else is set there.
local function takes(job, part, facts, default_part)
  if not part or not facts or part.state_up ~= UP or not can_run(job, part, facts) then return false end
  if part == default_part then return true end
  if facts[10] ~= "-" and not asks_for_gres(job) and not offers(facts[8], unescaped(facts[10]), 1) then return false end
  return lets_in(job, part, facts, default_part)
end

-- Fields by which a job names places, or asks for what is not checked here.
local UNCHECKED = {
  "req_nodes", "exc_nodes", "reservation", "clusters", "tres_per_socket", "cpus_per_tres", "mem_per_tres",
  "ntasks_per_tres", "batch_features", "sockets_per_node", "cores_per_socket", "threads_per_core", "ntasks_per_socket",
  "ntasks_per_core", "pn_min_tmp_disk",
}
local LONG = { "features", "tres_per_node", "tres_per_job", "tres_per_task", "account", "qos" }

-- What Slurm writes for "not given", by the width of the field.
local UNSET = { [0] = true, [65534] = true, [65535] = true, [4294967294] = true, [4294967295] = true, [""] = true }
local function is_set(value) return value ~= nil and not UNSET[value] end

-- Why a job stays as it is, or nil: it asks for places by name, or in a way that is not checked here.
local function fixed(job)
  if is_set(job.partition) then return "it names a partition" end
  for _, field in ipairs(UNCHECKED) do
    if is_set(job[field]) then return "it sets " .. field end
  end
  for _, field in ipairs(LONG) do
    if #tostring(job[field] or "") > LONGEST_FIELD then return field .. " is longer than what is checked" end
  end
  if is_set(job.tres_per_task) and not job.tres_per_task:find("^cpu[=:]%d+$") then return "it sets tres_per_task" end
  if given(job.het_job_offset, slurm.NO_VAL or 4294967294) then return "it is part of a heterogeneous job" end
  return nil
end

-- The decision --------------------------------------------------------------------------------------------------------

local function default_partition(part_list, otherwise)
  for name, part in pairs(part_list) do
    if part.flag_default == 1 or part.flag_default == true then return name end
  end
  return otherwise
end

-- A relative time; what is none raises. Lua 5.1 takes 'nan' and 'inf' for numbers.
local function ratio(text)
  local value = tonumber(text)
  if value and value > 0 and value < math.huge then return value end
  error("the table holds " .. tostring(text) .. " for a time", 0)
end

-- Choices as partition, relative time, its range, and the number of runs behind it; by the policy, best first.
local function choices_of(row)
  local choices = {}
  if row[4] == "" then return choices end
  for _, text in ipairs(split(row[4], ";")) do
    local name, relative, low, high, runs = unpack(split(text, ","))
    relative, low, high, runs = ratio(relative), ratio(low), ratio(high), tonumber(runs)
    choices[#choices + 1] = { name = unescaped(name), relative = relative, low = low, high = high, runs = runs }
  end
  return choices
end

-- Those of the choices that are about as fast as the fastest, fastest first, for Slurm to take what is free first. What
-- a job gets of generic resources it gets in all of them, so those that need some are left to jobs that nothing else
-- suits.
local function list_of(choices)
  local sorted, plain = {}, {}
  for i, choice in ipairs(choices) do sorted[i] = choice end
  table.sort(sorted, function(a, b) return a.relative < b.relative end)
  local near = {}
  for _, choice in ipairs(sorted) do
    if choice.relative <= LIST_FACTOR * sorted[1].relative then
      near[#near + 1] = choice
      if not choice.adds then plain[#plain + 1] = choice end
    end
  end
  if #plain > 0 then return plain end
  local same = {}
  for _, choice in ipairs(near) do
    if choice.adds == near[1].adds then same[#same + 1] = choice end
  end
  return same
end

local function duration(seconds)
  if seconds < 90 then return ("%.3g s"):format(seconds) end
  if seconds < 5400 then return ("%.3g min"):format(seconds / 60) end
  return ("%.3g h"):format(seconds / 3600)
end

local function names_of(choices)
  local names = {}
  for i, choice in ipairs(choices) do names[i] = choice.name end
  return table.concat(names, ",")
end

local function sentence(app, chosen, base_choice, seconds, policy)
  local choice, platforms = chosen[1], {}
  for i, other in ipairs(chosen) do platforms[i] = unescaped(other.facts[3]) end
  local how = choice.runs > 0 and ("measured %d times"):format(choice.runs) or "predicted"
  local time = seconds and (" about " .. duration(seconds * choice.relative)) or ""
  local where = ("partition %s (%s)"):format(choice.name, platforms[1])
  if policy ~= "list" then where = ("%s by policy '%s'"):format(where, policy) end
  if #chosen > 1 then
    where = ("partitions %s (%s), whichever starts it first"):format(names_of(chosen), table.concat(platforms, ", "))
  end
  local what
  if base_choice and base_choice.name ~= choice.name then
    what = ("takes%s %.3g times as long%s as on %s (range %.3g to %.3g; %s)"):format(
      time ~= "" and time .. "," or "", choice.relative / base_choice.relative, #chosen > 1 and " on " .. choice.name or "",
      base_choice.name, choice.low / base_choice.relative, choice.high / base_choice.relative, how)
  elseif #chosen > 1 then
    what = ("%s%s on %s (%s)"):format(time ~= "" and "takes" or "is fastest", time, choice.name, how)
  else
    what = ("%s%s there (%s)"):format(time ~= "" and "takes" or "is best left", time, how)
  end
  return ("crossperf: %s: %s %s. Your own choice: -p PARTITION."):format(where, app, what)
end

-- The limit on other platforms, in minutes: the top of the longest range, so that the job is not cut short there.
local function scaled(limit, chosen, base_choice, part_list)
  local longest, granted = 1, math.huge
  for _, choice in ipairs(chosen) do
    longest = math.max(longest, math.ceil(limit * choice.high / base_choice.relative))
    granted = math.min(granted, given(part_list[choice.name].max_time, slurm.INFINITE or 4294967295) or math.huge)
  end
  return math.min(longest, granted)
end

-- What is noted of a job for later: what it is, and where it was sent or would have been.
local function note_of(job, app, input, work, chosen, base_choice)
  if not SITE.tag_jobs or not app or job.admin_comment then return nil end
  local words = "crossperf app=" .. app:gsub("[%s%%;]", hex) .. " input=" .. input:gsub("[%s%%;]", hex)
  words = words .. (work and " work=" .. work or "")
  if chosen then
    words = words .. (SITE.shadow and " would=" or " sent=") .. names_of(chosen):gsub("[%s%%;]", hex)
    for _, choice in ipairs(base_choice and { chosen[1], base_choice } or {}) do
      words = words .. (" %s=%.4g,%.4g,%.4g"):format(choice == base_choice and "here" or "there",
        choice.relative, choice.low, choice.high)
    end
  end
  return words
end

-- What the table knows of a job: the name it goes by, its row, and the open table's lines about site and partitions.
local function look_up(apps, user, input)
  local opened, problem = open_table(SITE.table)
  if not opened then
    slurm.log_info("%s", "crossperf: " .. problem .. "; jobs are left as they are")
    return nil
  end
  local fine, app, row = pcall(find, opened, apps, user, input)
  opened.file:close()
  if not fine then error(app, 0) end
  return app, row, opened
end

-- Whether a job can end within its limit in a partition that is slower than the default one.
local function lasts(choice, base_choice, seconds, limit)
  if SITE.scale_limits or not base_choice or choice.relative <= base_choice.relative then return true end
  if limit == (slurm.INFINITE or 4294967295) then return true end
  return seconds ~= nil and limit ~= nil and seconds * choice.high <= 60 * limit
end

-- Where a job should run: the first partition of the row that takes it or, where the table knows nothing of the queues,
-- a list of those that are about as fast. And the default partition as a choice, and its name.
local function choose(job, part_list, row, opened)
  local default = default_partition(part_list, unescaped(opened.site[5]))
  local choices, open_to_it, base_choice = choices_of(row), {}, nil
  for _, choice in ipairs(choices) do
    if choice.name == default then base_choice = choice end
  end
  local seconds, limit = tonumber(row[3]), limit_of(job, part_list[default])
  for _, choice in ipairs(choices) do
    choice.facts = line(opened.tail, "partition\t" .. escaped(choice.name))
    local can_go = takes(job, part_list[choice.name], choice.facts, part_list[default])
    if can_go and lasts(choice, base_choice, seconds, limit) then
      choice.adds = choice.facts[10] ~= "-" and not asks_for_gres(job) and unescaped(choice.facts[10]) or nil
      open_to_it[#open_to_it + 1] = choice
    end
  end
  if #open_to_it == 0 then return nil end
  local stale = opened.site[4] ~= "0" and os.time() > tonumber(opened.site[4])
  local chosen = (stale or opened.site[2] == "list") and list_of(open_to_it) or { open_to_it[1] }
  return chosen, base_choice, default
end

-- The fields that let a job go where it should run.
local function fields_of(job, part_list, chosen, base_choice, default)
  if #chosen == 1 and chosen[1].name == default then return {} end
  local fields = { partition = names_of(chosen), gres = chosen[1].adds }
  local asked = given(job.time_limit, slurm.NO_VAL or 4294967294)
  if not asked then
    -- The new partition's default would hold otherwise, and might end the job early.
    fields.time_limit = limit_of(job, part_list[default])
  elseif SITE.scale_limits and base_choice then
    fields.time_limit = scaled(asked, chosen, base_choice, part_list)
  end
  return fields
end

-- The fields to set in a job, and what its user reads if anything.
local function decide(job, part_list)
  local apps, input, off, work = named(job)
  if off then return {} end
  local app, row, opened = look_up(apps, job.user_name or "", input)
  local chosen, base_choice, default
  if row and not fixed(job) then chosen, base_choice, default = choose(job, part_list, row, opened) end
  local note = note_of(job, app or apps[1], input, work, chosen, base_choice)
  if not chosen then return { admin_comment = note } end
  local message = sentence(app, chosen, base_choice, tonumber(row[3]), unescaped(opened.site[2]))
  if SITE.shadow then
    slurm.log_info("%s", (message:gsub("^crossperf: ", "crossperf would choose ")))
    return { admin_comment = note }
  end
  local fields = fields_of(job, part_list, chosen, base_choice, default)
  fields.admin_comment = note
  return fields, message
end

-- Call a function that may take no more than so many instructions; a hook of the site's own is put back.
local function bounded(most, call, ...)
  if not debug or not debug.sethook then return pcall(call, ...) end
  local hook, mask, count = debug.gethook()
  debug.sethook(function() error("it took more than " .. most .. " instructions", 0) end, "", most)
  local fine, result, message = pcall(call, ...)
  if type(hook) == "function" then debug.sethook(hook, mask, count) else debug.sethook() end
  return fine, result, message
end

-- Send a job where it should run. Never raises; returns nothing. Fields are set when all is decided, so that no job is
-- left between two places.
local function place(job, part_list)
  local fine, result, message = bounded(MOST_INSTRUCTIONS, decide, job, part_list)
  if fine then
    fine, result = pcall(function()
      for field, value in pairs(result) do job[field] = value end
      if message then slurm.log_user("%s", message) end
    end)
  end
  if not fine then
    pcall(function() slurm.log_info("%s", "crossperf: left a job as it is: " .. tostring(result)) end)
  end
end

return { place = place, named = named, checksum = checksum, digest_of = digest_of }

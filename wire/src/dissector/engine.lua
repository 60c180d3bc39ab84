-- Makes a dissector from a table that describes a protocol: its headers, and its kinds of frames.

local containers = { "uint8", "uint16", "uint24", "uint32", [8] = "uint64" }

local function protocol(desc)
  local proto = Proto(desc.name, desc.title)
  local experts = {}
  for key, says in pairs({
    short = "Frame cut short", version = "Unknown version", kind = "Unknown kind",
    value = "A number that means nothing", length = "Lengths contradict each other",
  }) do
    experts[key] =
      ProtoExpert.new(desc.name .. ".malformed." .. key, says, expert.group.MALFORMED, expert.severity.ERROR)
  end
  proto.experts = experts

  local kinds = {}
  for kind, message in pairs(desc.messages) do kinds[kind] = message.name end
  local common = {
    version = ProtoField.uint8(desc.name .. ".version", "version", base.DEC, nil, 0xf0),
    kind = ProtoField.uint8(desc.name .. ".kind", "kind", base.DEC, kinds, 0x0f),
  }
  local data = ProtoField.bytes(desc.name .. ".data", "data")
  local padding = ProtoField.bytes(desc.name .. ".padding", "padding")
  local fields = { common.version, common.kind, data, padding }
  for header_name, header in pairs(desc.headers) do
    for _, field in ipairs(header.fields) do
      if common[field.name] then
        field.proto = common[field.name]
      else
        local abbreviation = desc.name .. "." .. header_name .. "." .. field.name
        local shown = field.bytes < 4 and base.DEC or base.DEC_HEX
        field.proto = ProtoField[containers[field.bytes]](
          abbreviation, field.name, shown, nil, field.mask, field.about)
        fields[#fields + 1] = field.proto
      end
    end
  end
  local lane_fields
  if desc.lanes then
    lane_fields = {
      cell = ProtoField.uint16(desc.name .. ".lane.cell", "cell", base.DEC),
      lane = ProtoField.uint16(desc.name .. ".lane.lane", "lane", base.DEC),
      half = ProtoField.uint8(desc.name .. ".lane.half", "half", base.DEC),
      unsolicited = ProtoField.bool(desc.name .. ".lane.unsolicited", "unsolicited"),
    }
    for _, field in pairs(lane_fields) do fields[#fields + 1] = field end
  end
  proto.fields = fields

  -- The value of a field of at most 32 bits.
  local function value_of(tvb, field)
    local value = tvb(field.at, field.bytes):uint()
    if field.mask then value = bit.rshift(bit.band(value, field.mask), field.shift) end
    return value
  end

  -- Shows a message whose header is complete. Returns how many bytes it and what belongs to it take, and whether the
  -- rest is a payload of this EtherType.
  local function show(message, header, tvb, pinfo, tree)
    local values, items = {}, {}
    for _, field in ipairs(header.fields) do
      items[field.name] = tree:add(field.proto, tvb(field.at, field.bytes))
      if field.bytes <= 4 then values[field.name] = value_of(tvb, field) end
      local names = message.values and message.values[field.name]
      if names then
        local name = names[values[field.name]]
        items[field.name]:append_text(" (" .. (name or "?") .. ")")
        if not name then items[field.name]:add_proto_expert_info(experts.value) end
      end
    end
    local summary = { message.name }
    for _, name in ipairs(message.summary) do
      summary[#summary + 1] = name .. "=" .. tostring(values[name])
    end
    local line = table.concat(summary, " ")
    pinfo.cols.info = line
    tree:append_text(", " .. line)
    if message.at_most then
      local sum = 0
      for _, part in ipairs(message.at_most.parts) do sum = sum + values[part] end
      if sum > values[message.at_most.limit] then
        items[message.at_most.parts[1]]:add_proto_expert_info(experts.length)
      end
    end
    if message.payload then return header.bytes, values[message.payload] end
    local count = message.count and values[message.count] or 0
    local room = tvb:len() - header.bytes
    if count > room then
      items[message.count]:add_proto_expert_info(experts.short)
      count = room
    end
    if count > 0 then tree:add(data, tvb(header.bytes, count)) end
    return header.bytes + count
  end

  function proto.dissector(tvb, pinfo, root)
    pinfo.cols.protocol = desc.title
    local tree = root:add(proto, tvb())
    if tvb:len() < 1 then
      tree:add_proto_expert_info(experts.short)
      return
    end
    local version, kind = tvb(0, 1):bitfield(0, 4), tvb(0, 1):bitfield(4, 4)
    local message = desc.messages[kind]
    local header = message and desc.headers[message.header]
    if version ~= desc.version or not message or tvb:len() < header.bytes then
      local of_version, of_kind = tree:add(common.version, tvb(0, 1)), tree:add(common.kind, tvb(0, 1))
      if version ~= desc.version then
        of_version:add_proto_expert_info(experts.version)
      elseif not message then
        of_kind:add_proto_expert_info(experts.kind)
      else
        tree:add_proto_expert_info(experts.short)
      end
      return
    end
    local used, ether_type = show(message, header, tvb, pinfo, tree)
    if used == tvb:len() then return end
    if ether_type then
      DissectorTable.get("ethertype"):try(ether_type, tvb(used):tvb(), pinfo, root)
    else
      tree:add(padding, tvb(used))
    end
  end
  if desc.udp_port then
    DissectorTable.get("udp.port"):add(desc.udp_port, proto)
  else
    DissectorTable.get("ethertype"):add(desc.ether_type, proto)
  end

  if desc.lanes then
    local vid, dei = Field.new("vlan.id"), Field.new("vlan.dei")
    local lanes = Proto(desc.name .. "_lane", desc.title .. " lane")
    function lanes.dissector(tvb, pinfo, root)
      local tag = vid()
      local cell = tag and tag.value - desc.lanes.first
      if not cell or cell < 0 or cell >= desc.lanes.cells then return end
      local tree = root:add(lanes, tvb(0, 0)):set_generated()
      tree:add(lane_fields.cell, cell):set_generated()
      tree:add(lane_fields.lane, math.floor(cell / 2)):set_generated()
      tree:add(lane_fields.half, cell % 2):set_generated()
      local early = dei()
      local unsolicited = early and (early.value == true or early.value == 1)
      tree:add(lane_fields.unsolicited, unsolicited):set_generated()
    end
    register_postdissector(lanes)
  end
end
